"""Texts to vectors, in the Parquet form that ``tercet index import`` reads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tercet.errors import InputError
from tercet.formats.sources import absolute_source
from tercet.index.items import Item
from tercet.interchange.batches import VectorBatch
from tercet.interchange.origin import Origin
from tercet.interchange.parquet import vector_table
from tercet.records import as_text
from tercet.scale.work import Record, Work, load_on
from tercet.scorers.dual_scorer import DualScorer

if TYPE_CHECKING:
    from tercet.settings.bulk import EncodeConfig


class Encode(Work):
    """The vector of each text, normalized if the model compares cosines, as an index stores it."""

    def __init__(self, config: "EncodeConfig", device: str) -> None:
        scorer = load_on(config.model, config.precision, device)
        if not isinstance(scorer, DualScorer):
            raise InputError(
                f"{config.model} is a cross-encoder, which has no vectors: use a bi- or poly-encoder"
            )
        self._scorer, self._side = scorer, config.side
        self._origin = Origin(
            fingerprint=scorer.fingerprint,
            kind=scorer.kind,
            model=str(absolute_source(config.model)),
            width=scorer.width,
        )

    def facts(self) -> dict[str, Any]:
        """The model and the width of its vectors."""
        origin = self._origin
        return {"kind": origin.kind, "fingerprint": origin.fingerprint, "width": origin.width}

    def run(self, records: Sequence[Record]) -> Any:
        """Columns id, text, metadata and vector."""
        texts = [record["text"] for record in records]
        vectors = self._scorer.encode(texts, side=self._side, normalize=self._scorer.uses_cosine)
        items = [Item(record["id"], as_text(record["text"]), record["metadata"]) for record in records]
        table = vector_table(VectorBatch(items, vectors), self._origin)
        return table if self._side == "candidate" else table.replace_schema_metadata(None)

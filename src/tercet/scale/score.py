"""Pairs of texts to scores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tercet.extras import require
from tercet.files.structured import json_text
from tercet.scale.work import Record, Work, load_on
from tercet.scorers.cross_scorer import CrossScorer

if TYPE_CHECKING:
    from tercet.settings.bulk import ScoreConfig


class Score(Work):
    """The score of each pair, or the value of each class of a classifier without a score."""

    def __init__(self, config: "ScoreConfig", device: str) -> None:
        self._scorer = load_on(config.model, config.precision, device)

    def facts(self) -> dict[str, Any]:
        """The model, and the names of its classes if it has no score."""
        return {"kind": self._scorer.kind, "fingerprint": self._scorer.fingerprint, "values": self._names()}

    def run(self, records: Sequence[Record]) -> Any:
        """Columns id, context, candidate, the values, and metadata."""
        arrow = require("pyarrow", extra="parquet", purpose="writing shards")
        left, right = ([record[side] for record in records] for side in ("context", "candidate"))
        scorer, names = self._scorer, self._names()
        if isinstance(scorer, CrossScorer) and names != ["score"]:
            values = scorer.classify(left, right)
        else:
            values = scorer.score_pairs(left, right)[:, None]
        return arrow.table(
            {
                "id": arrow.array([record["id"] for record in records], arrow.string()),
                "context": arrow.array(left),
                "candidate": arrow.array(right, arrow.string()),
                **{name: arrow.array(values[:, at], arrow.float32()) for at, name in enumerate(names)},
                "metadata": arrow.array(
                    [json_text(record["metadata"]) for record in records], arrow.string()
                ),
            }
        )

    def _names(self) -> list[str]:
        scorer = self._scorer
        if not isinstance(scorer, CrossScorer) or scorer.config.num_labels == 1:
            return ["score"]
        if scorer.config.score_class is not None:
            return ["score"]
        labels = scorer.config.labels or [f"class {number}" for number in range(scorer.config.num_labels)]
        return [f"score of {label}" for label in labels]

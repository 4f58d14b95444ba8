"""Examples to ranks: where a model puts the right one among the candidates of each context."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tercet.evaluate.tasks.choices import DEPTHS, ChoiceTask
from tercet.extras import require
from tercet.scale.examples import example_table, examples_of
from tercet.scale.shards import ShardFolder
from tercet.scale.work import Record, Work, load_on

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tercet.settings.bulk import ScoreConfig


class Evaluate(Work):
    """The rank of the right candidate, which is the first; ties count against the model."""

    def __init__(self, config: "ScoreConfig", device: str) -> None:
        self._scorer = load_on(config.model, config.precision, device)

    def facts(self) -> dict[str, Any]:
        """The model."""
        return {"kind": self._scorer.kind, "fingerprint": self._scorer.fingerprint}

    def run(self, records: Sequence[Record]) -> Any:
        """Columns row, context, rank and candidates, their number."""
        arrow = require("pyarrow", extra="parquet", purpose="writing shards")
        examples = examples_of(records)
        result = ChoiceTask("bulk", examples).run(self._scorer, repr(self._scorer))
        counts = [len(example.candidates) for example in examples]
        return example_table(
            records,
            {"rank": (result.columns["rank"].tolist(), arrow.int64()), "candidates": (counts, arrow.int64())},
        )


def metrics_of(folder: ShardFolder) -> dict[str, Any]:
    """R@k for each k below the number of candidates, and MRR, over all shards."""
    parquet = require("pyarrow.parquet", extra="parquet", purpose="reading shards")
    files = [folder.path / folder.done[number].name for number in sorted(folder.done)]
    tables = [parquet.read_table(file, columns=["rank", "candidates"]) for file in files]
    ranks, counts = (
        np.concatenate([table[name].to_numpy() for table in tables]) for name in ("rank", "candidates")
    )
    most = int(counts.max())
    values = {f"R@{depth}/{most}": ranks <= depth for depth in DEPTHS if depth < most}
    return {"metrics": {name: _mean(each) for name, each in (values | {"MRR": 1 / ranks}).items()}}


def _mean(values: "NDArray[Any]") -> dict[str, float]:
    return {"value": float(np.mean(values)), "standard_error": float(np.std(values) / np.sqrt(len(values)))}

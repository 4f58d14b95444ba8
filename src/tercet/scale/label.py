"""Examples to the scores of teachers, as the reader ``scored`` reads them."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tercet.extras import require
from tercet.scale.examples import example_table, examples_of
from tercet.scale.work import Record, Work, load_on
from tercet.training.teacher import mean_scores, with_scores

if TYPE_CHECKING:
    from tercet.settings.bulk import LabelConfig


class Label(Work):
    """The mean score of the teachers for each candidate."""

    def __init__(self, config: "LabelConfig", device: str) -> None:
        self._teachers = [load_on(model, config.precision, device) for model in config.models]

    def facts(self) -> dict[str, Any]:
        """The fingerprints of the teachers."""
        return {"teachers": [teacher.fingerprint for teacher in self._teachers]}

    def run(self, records: Sequence[Record]) -> Any:
        """Columns row, context, candidates and scores."""
        arrow = require("pyarrow", extra="parquet", purpose="writing shards")
        score = partial(mean_scores, [teacher.score_pairs for teacher in self._teachers])
        labelled = with_scores(score, examples_of(records))
        return example_table(
            records,
            {
                "candidates": ([example.candidates for example in labelled], arrow.list_(arrow.string())),
                "scores": ([example.targets for example in labelled], arrow.list_(arrow.float32())),
            },
        )

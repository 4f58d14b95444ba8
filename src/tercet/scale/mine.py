"""Examples to hard negatives, as the reader ``answers`` reads them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tercet.data.parquet_vectors import parquet_vectors
from tercet.errors import InputError
from tercet.extras import require
from tercet.records import Floats, Progress
from tercet.scale.encode import Encode
from tercet.scale.examples import example_table, examples_of
from tercet.scale.job import Rows, run_job
from tercet.scale.shards import ShardFolder
from tercet.scale.work import Record, Task, Work, load_on
from tercet.scorers.dual_scorer import DualScorer
from tercet.settings.bulk import EncodeConfig, WorkersConfig
from tercet.settings.mining import MiningConfig
from tercet.training.mining import Answers, NegativeMiner, answers_of


@dataclass(frozen=True, kw_only=True)
class MineTask:
    """What each worker gets: the model, the settings, and all answers with their vectors ``[C, D]``."""

    encode: EncodeConfig
    mining: MiningConfig
    answers: Answers
    vectors: Floats


class Mine(Work):
    """The hard negatives of each example, chosen among the answers of all."""

    def __init__(self, config: MineTask, device: str) -> None:
        scorer = load_on(config.encode.model, config.encode.precision, device)
        if not isinstance(scorer, DualScorer):
            raise InputError(
                f"mining needs vectors, and {config.encode.model} is a cross-encoder: use a bi- or "
                "poly-encoder"
            )
        self._scorer = scorer
        self._folder = TemporaryDirectory()
        lexical = Path(self._folder.name) / "lexical"
        self._miner = NegativeMiner(scorer, config.mining, config.answers, config.vectors, lexical)

    def facts(self) -> dict[str, Any]:
        """The model."""
        return {"kind": self._scorer.kind, "fingerprint": self._scorer.fingerprint}

    def run(self, records: Sequence[Record]) -> Any:
        """Columns row, context, answer and negatives."""
        arrow = require("pyarrow", extra="parquet", purpose="writing shards")
        mined = list(self._miner.extended(examples_of(records)))
        return example_table(
            records,
            {
                "answer": ([example.candidates[0] for example in mined], arrow.string()),
                "negatives": ([example.candidates[1:] for example in mined], arrow.list_(arrow.string())),
            },
        )


def run_mining(
    rows: Rows,
    out: Path,
    workers: WorkersConfig,
    *,
    encode: EncodeConfig,
    mining: MiningConfig,
    on_progress: Progress | None = None,
) -> ShardFolder:
    """Encode the different answers, then mine; until that is done, their shards are beside ``out``."""
    answers = answers_of(example for record in rows.read() for example in examples_of([record]))
    texts = rows._replace(
        read=partial(answer_records, answers), description={**rows.description, "step": "answers"}
    )
    beside = out.with_name(f".{out.name}.answers")
    kept = run_job(Task(Encode, encode), texts, beside, workers, reuse=True, on_progress=on_progress)
    task = Task(Mine, MineTask(encode=encode, mining=mining, answers=answers, vectors=vectors_in(kept)))
    folder = run_job(task, rows, out, workers, on_progress=on_progress)
    kept.remove()
    return folder


def answer_records(answers: Answers) -> Iterator[Record]:
    """The answers as texts to encode."""
    for number, text in enumerate(answers.texts):
        yield {"id": str(number), "text": text, "metadata": {}}


def vectors_in(folder: ShardFolder) -> Floats:
    """``[C, D]``: the vectors of all shards, in order."""
    return np.concatenate(
        list(_blocks(folder.path / folder.done[number].name for number in sorted(folder.done)))
    )


def _blocks(files: Iterable[Path]) -> Iterator[Floats]:
    for file in files:
        yield from parquet_vectors(str(file), "vector")

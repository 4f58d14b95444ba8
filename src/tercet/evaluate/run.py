"""Runs models on tasks; the results are tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from tercet.errors import InputError
from tercet.evaluate.baselines import BM25, Baseline
from tercet.evaluate.model_names import ModelEntry, open_scorer, parse_model_name
from tercet.evaluate.results import Rankings, Result
from tercet.evaluate.significance import (
    Columns,
    Difference,
    Estimate,
    MeanOf,
    Sample,
    SeedSpread,
    difference,
    estimate,
    seed_spread,
)
from tercet.evaluate.tasks.load import Task
from tercet.evaluate.tasks.retrieval import DEPTH, RetrievalTask
from tercet.inputs import check_count
from tercet.scorers.scorer import Scorer
from tercet.scorers.text_scorer import TextScorer
from tercet.settings.chunks import ChunkConfig
from tercet.settings.models import Precision


@dataclass(frozen=True)
class Row:
    """One model on one task; several results come from several seeds."""

    label: str
    results: tuple[Result, ...]
    fingerprints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len({tuple(result.metrics) for result in self.results}) > 1:
            raise InputError(f"{self.label}: all seeds of a row must be models of one kind")

    @property
    def first(self) -> Result:
        """The result, or that of the first seed."""
        return self.results[0]

    @property
    def main_metric(self) -> str:
        """The name of the metric by which models are compared."""
        return self.first.main_metric

    @property
    def milliseconds(self) -> float:
        """The time per case, encoding included."""
        seconds = sum(result.seconds for result in self.results)
        return 1000 * seconds / sum(result.cases for result in self.results)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Every metric, averaged over the seeds, with its confidence interval."""
        return {name: estimate(self._sample(name)) for name in self.first.metrics}

    def seed_spread(self, name: str) -> SeedSpread | None:
        """Mean and standard deviation of a metric over the seeds; None if there is one seed."""
        if len(self.results) == 1:
            return None
        return seed_spread([result.sample(name).value for result in self.results])

    def against(self, other: "Row") -> Difference:
        """The difference of the main metric to that of another row, on the same cases."""
        return difference(self._sample(self.main_metric), other._sample(self.main_metric))

    def _sample(self, name: str) -> Sample:
        """The mean of a metric over the seeds, as one metric of all their columns."""
        if len(self.results) == 1:
            return self.first.sample(name)
        samples = [result.sample(name) for result in self.results]
        means = [
            sample.columns[sample.metric.column] for sample in samples if isinstance(sample.metric, MeanOf)
        ]
        if len(means) == len(samples):  # the mean over seeds is a mean over cases too
            return Sample(MeanOf("mean"), {"mean": np.mean(means, axis=0)}, samples[0].strata)
        columns = {
            f"{seed} {column}": values
            for seed, sample in enumerate(samples)
            for column, values in sample.columns.items()
        }

        def mean(at: Columns) -> float:
            values = [sample.metric(_with_prefix(at, f"{seed} ")) for seed, sample in enumerate(samples)]
            return sum(values) / len(values)

        return Sample(mean, columns, samples[0].strata, samples[0].half_samples)


@dataclass(frozen=True)
class Table:
    """All models on one task."""

    task: str
    rows: tuple[Row, ...]
    size: str = ""
    """The number of cases in words. Default: that of the first row."""
    notes: tuple[str, ...] = ()
    """What a reader of the results must know about the data."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """The number of rows of the data that were not used, by reason."""
    sampled_from: int | None = None
    """The number of cases of which the task has a random sample; None if it has all or that is unknown."""

    def __post_init__(self) -> None:
        if not self.size:
            object.__setattr__(self, "size", f"{self.rows[0].first.cases:,} cases")

    @cached_property
    def verdicts(self) -> dict[str, Difference]:
        """The difference of every other row to the first, by label."""
        reference, *others = self.rows
        return {row.label: row.against(reference) for row in others}


class Evaluation:
    """Runs models on tasks and opens each model once.

    Args:
        reranker: a model that reranks the results of all others, for retrieval.
        rerank_depth: the number of documents that it reranks.
        hybrid: also fuse each ranking with that of BM25, for retrieval.
        chunk: split documents into chunks, for retrieval.
        report: receives a line about each step.
    """

    def __init__(
        self,
        models: Sequence[ModelEntry],
        *,
        reranker: str | None = None,
        rerank_depth: int = DEPTH,
        hybrid: bool = False,
        chunk: ChunkConfig | None = None,
        precision: Precision = "fp32",
        device: str | None = None,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.models = models
        self.reranker = reranker
        self.rerank_depth = check_count("rerank_depth", rerank_depth)
        self.hybrid = hybrid
        self.chunk = chunk
        self._precision: Precision = precision
        self._device = device
        self._report = report
        self._scorers: dict[str, Scorer] = {}

    def check(self, tasks: Sequence[Task]) -> None:
        """Open all models and raise early, before hours of work, if one cannot do a task."""
        scorers = [self._open(source) for model in self.models for source in model.sources]
        if self.reranker is not None:
            self._open(self.reranker)
        for task in tasks:
            if (self.reranker or self.hybrid or self.chunk) and not isinstance(task, RetrievalTask):
                raise InputError(
                    f"{task.name}: --reranker, --hybrid and --chunk are for retrieval: remove them"
                )
            for scorer in scorers:
                task.check(scorer)

    def table(self, task: Task) -> Table:
        """The results of every model on a task; for retrieval also with fusion and reranking."""
        self.check([task])
        if isinstance(task, RetrievalTask):
            depth = task.depth if self.reranker is None else max(task.depth, self._reranked_of(task))
            task = replace(task, depth=depth, chunk=self.chunk)
        rows: list[Row] = []
        for model in self.models:
            self._report(f"{task.name}: {model.label}")
            scorers = [self._fitted(source, task) for source in model.sources]
            results = tuple(_timed(task, scorer, model.label) for scorer in scorers)
            rows.append(Row(model.label, results, tuple(_fingerprint(scorer) for scorer in scorers)))
        if isinstance(task, RetrievalTask):
            rows += self._fused(task, rows)
            rows += self._reranked(task, rows)
            return Table(
                task.name,
                tuple(rows),
                size=task.size,
                notes=(*task.notes, *self._notes(task)),
                skipped=task.data.skipped,
                sampled_from=task.all_queries,
            )
        return Table(task.name, tuple(rows))

    def _fused(self, task: RetrievalTask, rows: Sequence[Row]) -> list[Row]:
        """Every row but BM25's own, fused with BM25."""
        if not self.hybrid:
            return []
        lexical = task.rankings(self._fitted(BM25.kind, task))
        return [
            _changed(task, row, BM25.kind, lambda rankings: task.fused([rankings, lexical]))
            for row, model in zip(rows, self.models, strict=True)
            if model.sources != (BM25.kind,)
        ]

    def _reranked(self, task: RetrievalTask, rows: Sequence[Row]) -> list[Row]:
        """Every row, reranked."""
        if self.reranker is None:
            return []
        scorer, name = self._fitted(self.reranker, task), parse_model_name(self.reranker).label

        def rerank(rankings: Rankings) -> Rankings:
            return task.reranked(rankings, scorer, depth=self._reranked_of(task))

        reranked: list[Row] = []
        for row in rows:
            self._report(f"{task.name}: {row.label}, reranked by {name}")
            reranked.append(_changed(task, row, name, rerank))
        return reranked

    def _reranked_of(self, task: RetrievalTask) -> int:
        """How many documents of each query are reranked: not more than there are."""
        return min(self.rerank_depth, len(task.data.documents))

    def _notes(self, task: RetrievalTask) -> list[str]:
        """The settings of reranking and chunks."""
        count = self._reranked_of(task)
        notes = [] if self.reranker is None else [f"reranked documents of each query: {count:,}"]
        if self.chunk is not None:
            size = (
                "as many tokens as the model reads"
                if self.chunk.size is None
                else f"{self.chunk.size} tokens"
            )
            notes.append(
                f"chunks: {size}, overlap {self.chunk.overlap}; BM25 and tf-idf read whole documents"
            )
        return notes

    def _fitted(self, source: str, task: Task) -> Scorer:
        """The scorer; a baseline is fitted to the task."""
        scorer = self._open(source)
        if isinstance(scorer, Baseline):
            scorer.fit(task.texts())
        return scorer

    def _open(self, source: str) -> Scorer:
        if source not in self._scorers:
            self._scorers[source] = open_scorer(source, precision=self._precision, device=self._device)
        return self._scorers[source]


def _with_prefix(columns: Columns, prefix: str) -> Columns:
    """The columns whose names start with a prefix, without it."""
    return {name.removeprefix(prefix): values for name, values in columns.items() if name.startswith(prefix)}


def _timed(task: Task, scorer: Scorer, model: str) -> Result:
    start = perf_counter()
    result = task.run(scorer, model)
    return replace(result, seconds=perf_counter() - start)


def _changed(task: RetrievalTask, row: Row, other: str, change: Callable[[Rankings], Rankings]) -> Row:
    """A row whose rankings are changed by another scorer; its time is added."""
    label = f"{row.label} + {other}"
    results: list[Result] = []
    for result in row.results:
        start = perf_counter()
        changed = task.result(change(result.rankings), label)
        results.append(replace(changed, seconds=result.seconds + perf_counter() - start))
    return Row(label, tuple(results), row.fingerprints)


def _fingerprint(scorer: Scorer) -> str:
    return scorer.fingerprint if isinstance(scorer, TextScorer) else ""

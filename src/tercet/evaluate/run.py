"""Models on tasks: the tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import TypeAlias

from tercet.config import Precision
from tercet.errors import InputError
from tercet.evaluate.baselines import Baseline, Bm25
from tercet.evaluate.named import Named, open_scorer, parse_name
from tercet.evaluate.results import Result
from tercet.evaluate.significance import (
    Columns,
    Difference,
    Figure,
    Sample,
    Spread,
    difference,
    figure,
    spread,
)
from tercet.evaluate.tasks.load import Task
from tercet.evaluate.tasks.retrieval import RetrievalTask
from tercet.models.neural import NeuralScorer
from tercet.models.scorer import Scorer

Teller: TypeAlias = Callable[[str], None]
Rankings: TypeAlias = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Row:
    """One model on one task; several results are several seeds."""

    label: str
    results: tuple[Result, ...]
    fingerprints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len({tuple(each.measures) for each in self.results}) > 1:
            raise InputError(f"{self.label}: the seeds of a row must be models of one kind")

    @property
    def first(self) -> Result:
        """The result, or that of the first seed."""
        return self.results[0]

    @property
    def main(self) -> str:
        """The measure that models are compared by."""
        return self.first.main

    @property
    def milliseconds(self) -> float:
        """The time for a case, every text read anew."""
        return 1000 * sum(each.seconds for each in self.results) / sum(each.cases for each in self.results)

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Every measure, of several seeds their mean, with its interval over the cases."""
        return {name: figure(self._sample(name)) for name in self.first.measures}

    def spread(self, name: str) -> Spread | None:
        """Mean and deviation over the seeds, if there are several."""
        if len(self.results) == 1:
            return None
        return spread([each.sample(name).value for each in self.results])

    def against(self, other: "Row") -> Difference:
        """How far the main measure is above another row's, on the same cases."""
        return difference(self._sample(self.main), other._sample(self.main))

    def _sample(self, name: str) -> Sample:
        """The mean of a measure over the seeds."""
        if len(self.results) == 1:
            return self.first.sample(name)
        samples = [each.sample(name) for each in self.results]
        columns = {
            f"{seed} {column}": values
            for seed, sample in enumerate(samples)
            for column, values in sample.columns.items()
        }
        first = samples[0]

        def mean(at: Columns) -> float:
            return sum(sample.measure(_part(at, f"{seed} ")) for seed, sample in enumerate(samples)) / len(
                samples
            )

        return Sample(mean, columns, first.strata, first.halves)


@dataclass(frozen=True)
class Table:
    """All models on one task."""

    task: str
    rows: tuple[Row, ...]

    @cached_property
    def verdicts(self) -> dict[str, Difference]:
        """Every other row against the first."""
        reference, *others = self.rows
        return {row.label: row.against(reference) for row in others}


def _part(columns: Columns, prefix: str) -> Columns:
    return {name.removeprefix(prefix): values for name, values in columns.items() if name.startswith(prefix)}


class Evaluation:
    """Runs models on tasks; every model is opened once."""

    def __init__(
        self,
        models: Sequence[Named],
        *,
        rerank: str | None = None,
        hybrid: bool = False,
        precision: Precision = "fp32",
        device: str | None = None,
        tell: Teller = lambda _: None,
    ) -> None:
        self.models = models
        self.rerank = rerank
        self.hybrid = hybrid
        self._precision: Precision = precision
        self._device = device
        self._tell = tell
        self._opened: dict[str, Scorer] = {}

    def check(self, tasks: Sequence[Task]) -> None:
        """Open all models, and raise if one cannot do a task: before hours have passed."""
        scorers = [self._opened_scorer(source) for model in self.models for source in model.sources]
        if self.rerank is not None:
            self._opened_scorer(self.rerank)
        for task in tasks:
            if (self.rerank or self.hybrid) and not isinstance(task, RetrievalTask):
                raise InputError(f"{task.name}: --rerank and --hybrid are for retrieval")
            for scorer in scorers:
                task.check(scorer)

    def table(self, task: Task) -> Table:
        """Every model on a task, and of retrieval also their rankings fused with BM25's and read again."""
        self.check([task])
        rows: list[Row] = []
        for model in self.models:
            self._tell(f"{task.name}: {model.label}")
            scorers = [self._scorer(source, task) for source in model.sources]
            results = tuple(_timed(task, scorer, model.label) for scorer in scorers)
            rows.append(Row(model.label, results, tuple(_fingerprint(scorer) for scorer in scorers)))
        if isinstance(task, RetrievalTask):
            rows += self._more_rankings(task, rows)
        return Table(task.name, tuple(rows))

    def _more_rankings(self, task: RetrievalTask, rows: Sequence[Row]) -> list[Row]:
        made = [*rows]
        if self.hybrid:
            words = task.rankings(self._scorer(Bm25.kind, task))
            made += [
                _again(task, row, Bm25.kind, lambda found: task.fused([found, words]))
                for row, model in zip(rows, self.models, strict=True)
                if model.sources != (Bm25.kind,)
            ]
        if self.rerank:
            reader, name = self._scorer(self.rerank, task), parse_name(self.rerank).label
            for row in list(made):
                self._tell(f"{task.name}: {row.label}, read again by {name}")
                made.append(_again(task, row, name, lambda found: task.reranked(found, reader)))
        return made[len(rows) :]

    def _scorer(self, source: str, task: Task) -> Scorer:
        scorer = self._opened_scorer(source)
        if isinstance(scorer, Baseline):
            scorer.fit(task.texts())
        return scorer

    def _opened_scorer(self, source: str) -> Scorer:
        if source not in self._opened:
            self._opened[source] = open_scorer(source, precision=self._precision, device=self._device)
        return self._opened[source]


def _timed(task: Task, scorer: Scorer, model: str) -> Result:
    start = perf_counter()
    result = task.run(scorer, model)
    return replace(result, seconds=perf_counter() - start)


def _again(task: RetrievalTask, row: Row, other: str, change: Callable[[Rankings], Rankings]) -> Row:
    """The rankings of a row after another scorer's say."""
    label = f"{row.label} + {other}"
    results: list[Result] = []
    for each in row.results:
        start = perf_counter()
        changed = task.result(change(each.runs), label)
        results.append(replace(changed, seconds=each.seconds + perf_counter() - start))
    return Row(label, tuple(results), row.fingerprints)


def _fingerprint(scorer: Scorer) -> str:
    return scorer.fingerprint if isinstance(scorer, NeuralScorer) else ""

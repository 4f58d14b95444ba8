"""Task settings to tasks with their data."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from tercet.data.columns import check_column, filled, with_all
from tercet.data.readers import iter_rows, matching_rows, read_examples
from tercet.data.rows import Row
from tercet.data.score_column import read_score_column
from tercet.data.sources import open_source
from tercet.errors import DataError, InputError
from tercet.evaluate.results import Result
from tercet.evaluate.tasks.choices import ChoiceTask, TripletTask
from tercet.evaluate.tasks.classes import ClassTask
from tercet.evaluate.tasks.labelled import ClusterTask, Labelled, ProbeTask
from tercet.evaluate.tasks.load_retrieval import load_retrieval
from tercet.evaluate.tasks.pairs import MatchTask, Pairs, SimilarityTask
from tercet.inputs import check_text
from tercet.scorers.scorer import Scorer
from tercet.settings.data import DataConfig
from tercet.settings.tasks import TaskConfig, TaskKind

if TYPE_CHECKING:
    from tercet.records import Ints


class Task(Protocol):
    """An evaluation task with its data."""

    @property
    def name(self) -> str:
        """The name in tables."""

    def texts(self) -> list[str]:
        """The texts that a baseline is fitted to."""

    def check(self, scorer: Scorer) -> None:
        """Raise if the scorer cannot do the task."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """The result of a scorer, which tables call ``model``."""


Builder: TypeAlias = Callable[[TaskConfig, Path | None], Task]


def load_task(config: TaskConfig, *, root: Path | None = None) -> Task:
    """The task with its data.

    Args:
        root: the folder in which relative paths are looked up.
    """
    return BUILDERS[config.kind](config, root)


def group_numbers(
    data: DataConfig, count: int, *, group: str, folds: int, seed: int, root: Path | None
) -> "Ints":
    """``[N]``: the number of each pair's group.

    Args:
        count: N, the number of pairs in ``data``.
        group: a column whose values are the groups, or else
        folds: the number of random folds of equal size.
    """
    if not group:
        if not 2 <= folds <= count:
            raise InputError(f"folds must be from 2 to {count}, the number of pairs, got {folds}")
        return np.random.default_rng(seed).permutation(count) % folds
    if data.limit is not None:
        raise InputError(
            f"groups by a column need all rows, and limit is {data.limit}: remove one of the two"
        )
    values = [str(filled(row, group)) for row in iter_rows(data, root=root)]
    numbers: Ints = np.unique(values, return_inverse=True)[1]
    return numbers


def _similarity(config: TaskConfig, root: Path | None) -> SimilarityTask:
    return SimilarityTask(config.name, _pairs(config, root))


def _match(config: TaskConfig, root: Path | None) -> MatchTask:
    return MatchTask(config.name, _pairs(config, root))


def _classes(config: TaskConfig, root: Path | None) -> ClassTask:
    """Without ``labels``, they are the names in the score column, in alphabetical order, or numbers."""
    data = config.data()
    if not data.labels:
        found = read_score_column(iter_rows(data, root=root), data.column_names()["score"])
        data = replace(data, labels=found.labels)
    return ClassTask(config.name, Pairs.of(read_examples(data, root=root)), data.labels)


def _choices(config: TaskConfig, root: Path | None) -> ChoiceTask:
    return ChoiceTask(config.name, read_examples(config.data(), root=root), among_all=config.ranks_all)


def _triplets(config: TaskConfig, root: Path | None) -> TripletTask:
    return TripletTask(config.name, read_examples(config.data(), root=root))


def _probe(config: TaskConfig, root: Path | None) -> ProbeTask:
    names: dict[str, int] = {}
    data = _labelled(config, config.files, root, names)
    test = _labelled(config, config.test, root, names) if config.test else None
    _check_labels(config, names)
    return ProbeTask(config.name, data, test, config.seed)


def _clusters(config: TaskConfig, root: Path | None) -> ClusterTask:
    names: dict[str, int] = {}
    data = _labelled(config, config.files, root, names)
    _check_labels(config, names)
    return ClusterTask(config.name, data, config.seed)


BUILDERS: dict[TaskKind, Builder] = {
    "similarity": _similarity,
    "choices": _choices,
    "retrieval": load_retrieval,
    "pairs": _match,
    "classes": _classes,
    "triplets": _triplets,
    "probe": _probe,
    "clusters": _clusters,
}
"""The function that builds each kind of task."""


def _pairs(config: TaskConfig, root: Path | None) -> Pairs:
    data = config.data()
    examples = read_examples(data, root=root)
    if not config.group and not config.folds:
        return Pairs.of(examples)
    numbers = group_numbers(
        data, len(examples), group=config.group, folds=config.folds, seed=config.seed, root=root
    )
    return Pairs.of(examples, numbers)


def _labelled(
    config: TaskConfig, files: tuple[str, ...], root: Path | None, names: dict[str, int]
) -> Labelled:
    """The labelled texts in files; ``names`` collects the numbers of the labels."""
    columns: Mapping[str, str] = {"text": "text", "label": "label"} | config.columns
    texts: list[str] = []
    others: list[str] = []
    labels: list[int] = []
    for row in _rows(config, files, root, columns):
        texts.append(check_column(row, columns["text"], check_text))
        if "other" in columns:
            others.append(check_column(row, columns["other"], check_text))
        labels.append(names.setdefault(str(filled(row, columns["label"])), len(names)))
    if not texts:
        raise DataError(f"{', '.join(files)}: there are no labelled texts: give at least one")
    return Labelled(texts, others, np.array(labels), list(names))


def _check_labels(config: TaskConfig, names: Mapping[str, int]) -> None:
    if len(names) < 2:
        raise InputError(f"{config.name}: at least 2 labels are needed, and all texts have the same label")


def _rows(
    config: TaskConfig, files: tuple[str, ...], root: Path | None, columns: Mapping[str, str]
) -> Iterator[Row]:
    """The rows of files that ``where`` and ``skip_empty`` keep."""
    for source in [open_source(name, root=root, file=config.file) for name in files]:
        rows = matching_rows(source, config.where)
        yield from with_all(rows, list(columns.values())) if config.skip_empty else rows

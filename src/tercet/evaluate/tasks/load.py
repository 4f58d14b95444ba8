"""A task's settings to the task with its data."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tercet.data.columns import check_column, filled
from tercet.data.readers import DataConfig, all_lessons, chosen_rows
from tercet.data.retrieval import RetrievalColumns, judged_set
from tercet.data.rows import Row
from tercet.data.sources import open_source
from tercet.errors import DataError, InputError
from tercet.evaluate.results import Result
from tercet.evaluate.tasks.choices import ChoiceTask, TripletTask
from tercet.evaluate.tasks.config import TaskConfig
from tercet.evaluate.tasks.labelled import ClusterTask, Labelled, ProbeTask
from tercet.evaluate.tasks.pairs import MatchTask, Pairs, SimilarityTask
from tercet.evaluate.tasks.retrieval import RetrievalTask
from tercet.inputs import check_text
from tercet.models.scorer import Scorer

if TYPE_CHECKING:
    from tercet.records import Counts


class Task(Protocol):
    """What is measured, with its data."""

    @property
    def name(self) -> str:
        """What it is called."""

    def texts(self) -> list[str]:
        """What a baseline learns its words from."""

    def check(self, scorer: Scorer) -> None:
        """Raise if the scorer cannot do it."""

    def run(self, scorer: Scorer, model: str) -> Result:
        """What a scorer, called ``model``, did."""


def load_task(config: TaskConfig, *, root: Path | None = None) -> Task:
    """The task with its data.

    Args:
        root: the folder that relative paths are looked for under.
    """
    if config.kind == "retrieval":
        return _retrieval(config, root)
    if config.kind in ("probe", "clusters"):
        return _labelled_task(config, root)
    lessons = all_lessons(config.data(), root=root)
    if config.kind == "choices":
        return ChoiceTask(config.name, lessons, among_all=config.ranks_all)
    if config.kind == "triplets":
        return TripletTask(config.name, lessons)
    grouped = bool(config.group or config.folds)
    numbers = (
        group_numbers(
            config.data(), len(lessons), group=config.group, folds=config.folds, seed=config.seed, root=root
        )
        if grouped
        else None
    )
    pairs = Pairs.of(lessons, numbers)
    return (SimilarityTask if config.kind == "similarity" else MatchTask)(config.name, pairs)


def _retrieval(config: TaskConfig, root: Path | None) -> RetrievalTask:
    data = config.data()
    corpus, queries, judgements = (open_source(name, root=root) for name in data.files)
    judged = judged_set(corpus, queries, judgements, RetrievalColumns(**data.columns))
    if not judged.queries:
        raise DataError(f"{', '.join(data.files)}: there is no query that a text answers")
    return RetrievalTask(config.name, judged)


def group_numbers(
    data: DataConfig, count: int, *, group: str, folds: int, seed: int, root: Path | None
) -> "Counts":
    """``[N]``: the number of the part that each pair is in, by a column or by folds drawn by chance."""
    if not group:
        if not 2 <= folds <= count:
            raise InputError(f"{count} pairs cannot be parted into {folds} folds")
        return np.random.default_rng(seed).permutation(count) % folds
    if data.limit is not None:
        raise InputError("all rows are read where a column parts them: there can be no limit")
    values = [str(filled(row, group)) for row in _rows(data.files, data.where, root)]
    numbers: Counts = np.unique(values, return_inverse=True)[1]
    return numbers


def _labelled_task(config: TaskConfig, root: Path | None) -> ProbeTask | ClusterTask:
    names: dict[str, int] = {}
    data = _labelled(config, config.files, root, names)
    test = _labelled(config, config.test, root, names) if config.test else None
    if len(names) < 2:
        raise InputError(f"{config.name}: all texts have the same label: there is nothing to tell apart")
    if config.kind == "clusters":
        return ClusterTask(config.name, data, config.seed)
    return ProbeTask(config.name, data, test, config.seed)


def _labelled(
    config: TaskConfig, files: tuple[str, ...], root: Path | None, names: dict[str, int]
) -> Labelled:
    """Rows with a text, perhaps a second one, and a label; ``names`` gets the labels in their order."""
    columns: Mapping[str, str] = {"text": "text", "label": "label"} | config.columns
    texts: list[str] = []
    others: list[str] = []
    labels: list[int] = []
    for row in _rows(files, config.where, root):
        if config.skip_empty and not str(row.columns.get(columns["text"]) or "").strip():
            continue
        texts.append(check_column(row, columns["text"], check_text))
        if "other" in columns:
            others.append(check_column(row, columns["other"], check_text))
        labels.append(names.setdefault(str(filled(row, columns["label"])), len(names)))
    if not texts:
        raise DataError(f"{', '.join(files)}: there is nothing to measure on")
    return Labelled(texts, others, np.array(labels), list(names))


def _rows(files: tuple[str, ...], where: Mapping[str, object], root: Path | None) -> Iterator[Row]:
    return chosen_rows(chain.from_iterable(open_source(name, root=root) for name in files), where)

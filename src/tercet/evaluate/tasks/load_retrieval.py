"""Retrieval tasks with their data: three files, a folder in the shape of BEIR, or a sample."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tercet.data.qrels import read_qrels
from tercet.data.retrieval import RetrievalColumns, RetrievalSet, read_retrieval_set
from tercet.data.rows import Row, read_rows
from tercet.data.sample import sample_folder
from tercet.data.sources import open_source
from tercet.errors import DataError
from tercet.evaluate.tasks.retrieval import RetrievalTask
from tercet.files.beir import BeirFiles, find_beir_files
from tercet.settings.data import SAMPLE
from tercet.settings.files import FileConfig
from tercet.settings.tasks import TaskConfig, find_folder


class Source(NamedTuple):
    """The rows of a file, and its name."""

    name: str
    rows: Iterator[Row]


def load_retrieval(config: TaskConfig, root: Path | None) -> RetrievalTask:
    """The task with its data; ``limit`` samples queries."""
    if config.is_folder:
        files = find_beir_files(_folder(config.files[0], root), config.split)
        sources, notes = _folder_sources(files, config.file), _split_notes(files)
    else:
        opened = (open_source(name, root=root, file=config.file) for name in config.files)
        sources, notes = [Source(*pair) for pair in zip(config.files, opened, strict=True)], []
    data = config.data(tuple(source.name for source in sources))
    corpus, queries, qrels = (_at_least_one(source) for source in sources)
    found = read_retrieval_set(corpus, queries, qrels, RetrievalColumns(**data.column_names()))
    if not found.queries:
        raise DataError(f"{data.files[2]}: no query has a relevant document: judge one with more than 0")
    return _task(config, found, [*notes, *_notes(found)])


def _task(config: TaskConfig, found: RetrievalSet, notes: list[str]) -> RetrievalTask:
    """The task of all queries, or of ``limit`` random ones."""
    every = len(found.queries)
    if config.limit is None or config.limit >= every:
        return RetrievalTask(config.name, found, notes=tuple(notes))
    sample = found.sample_queries(config.limit, seed=config.seed)
    return RetrievalTask(config.name, sample, all_queries=every, notes=tuple(notes))


def _folder(name: str, root: Path | None) -> Path:
    if name.startswith(SAMPLE):
        return sample_folder(name.removeprefix(SAMPLE))
    folder = find_folder(name, root=root)
    if folder is None:
        places = dict.fromkeys((Path(name), (root or Path()) / name))
        raise DataError(
            f"there is no folder {' or '.join(map(str, places))}: a retrieval set is a folder with corpus, "
            "queries and qrels"
        )
    return folder


def _folder_sources(files: BeirFiles, file: FileConfig) -> list[Source]:
    texts = [Source(str(path), read_rows(path, file)) for path in (files.corpus, files.queries)]
    return [*texts, Source(str(files.qrels), read_qrels(files.qrels, file))]


def _split_notes(files: BeirFiles) -> list[str]:
    """Which judgements are used, if others could have been meant."""
    if not files.split and not files.other_splits:
        return []
    others = f"other splits: {', '.join(files.other_splits)}" if files.other_splits else "the only split"
    return [f"judgements: {files.qrels.relative_to(files.corpus.parent)} ({others})"]


def _notes(found: RetrievalSet) -> list[str]:
    """What was skipped or assumed."""
    assumed = {"judgements without a relevance, counted as relevant": found.unrated} if found.unrated else {}
    skipped = {f"skipped {reason}": count for reason, count in found.skipped.items()}
    return [f"{reason}: {count:,}" for reason, count in (assumed | skipped).items()]


def _at_least_one(source: Source) -> Iterator[Row]:
    first = next(source.rows, None)
    if first is None:
        raise DataError(f"{source.name} has no rows: add at least one")
    yield from chain([first], source.rows)

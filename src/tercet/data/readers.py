"""Data sets to examples: each kind of reader and its function."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from tercet.data.columns import check_column, filled
from tercet.data.empty_rows import is_empty, without_empty
from tercet.data.examples import (
    answer_examples,
    choice_examples,
    dialogue_examples,
    document_examples,
    pair_examples,
    scored_examples,
    translation_examples,
)
from tercet.data.problems import gathered
from tercet.data.reservoir import reservoir_sample
from tercet.data.retrieval import RetrievalColumns, retrieval_examples
from tercet.data.rows import Row
from tercet.data.sources import open_source
from tercet.errors import DataError
from tercet.records import Example
from tercet.settings.data import DataConfig, ReaderKind

READERS: dict[ReaderKind, Callable[..., Iterator[Example]]] = {
    "pairs": pair_examples,
    "triplets": answer_examples,
    "answers": answer_examples,
    "choices": choice_examples,
    "scored": scored_examples,
    "dialogues": dialogue_examples,
    "documents": document_examples,
    "translations": translation_examples,
    "retrieval": retrieval_examples,
}
"""Each takes rows and the column of each role by name; ``retrieval`` takes three files and its columns."""


def iter_examples(config: DataConfig, *, root: Path | None = None) -> Iterator[Example]:
    """The examples of a data set, as a stream.

    Args:
        root: the folder in which relative paths are looked up.
    """
    names = config.column_names()
    if config.reader == "retrieval":
        sources = [open_source(name, root=root, file=config.file) for name in config.files]
        examples = READERS["retrieval"](*sources, RetrievalColumns(**names))
    else:
        labels: dict[str, Any] = {"labels": config.labels} if config.labels else {}
        read = partial(READERS[config.reader], **names, **labels)
        rows = iter_rows(config, root=root)
        parts = gathered(rows, lambda row: _read_row(row, read, group_column=config.group_column))
        examples = chain.from_iterable(parts)
    yield from (
        examples if config.limit is None else reservoir_sample(examples, config.limit, seed=config.seed)
    )


def read_examples(config: DataConfig, *, root: Path | None = None) -> list[Example]:
    """The examples of a data set, at least one."""
    examples = list(iter_examples(config, root=root))
    if not examples:
        names = ", ".join(config.files)
        if config.where:
            wanted = " and ".join(f"{column} = {str(value)!r}" for column, value in config.where.items())
            raise DataError(f"{names}: no row has {wanted}: change where")
        raise DataError(f"{names}: no rows to read: add at least one")
    return examples


def iter_rows(config: DataConfig, *, root: Path | None = None) -> Iterator[Row]:
    """The rows of all files that are read: those that ``where`` and ``skip_empty`` keep."""
    sources = [open_source(name, root=root, file=config.file) for name in config.files]
    for source in sources:
        rows = matching_rows(source, config.where)
        yield from without_empty(rows, partial(_empty_columns, config)) if config.skip_empty else rows


def matching_rows(rows: Iterable[Row], where: Mapping[str, object]) -> Iterator[Row]:
    """The rows whose columns have the values in ``where``, compared as strings: CSV has no numbers."""
    for row in rows:
        values = [check_column(row, column, lambda value, _: value) for column in where]
        if all(str(value) == str(wanted) for value, wanted in zip(values, where.values(), strict=True)):
            yield row


def _empty_columns(config: DataConfig, row: Row) -> list[str]:
    """The columns that are read and empty; an empty list of negatives means that there are none."""
    roles = config.column_names() | ({"group": config.group_column} if config.group_column else {})
    values = {role: row.columns.get(name, name) for role, name in roles.items()}  # missing is not empty
    empty = [role for role, value in values.items() if is_empty(value) and (role, value) != ("negatives", [])]
    return [roles[role] for role in empty]


def _read_row(
    row: Row, read: Callable[[Iterable[Row]], Iterator[Example]], *, group_column: str
) -> list[Example]:
    """The examples of a row; their group is the row's value of ``group_column``, if there is one."""
    if not group_column:
        return list(read([row]))
    group = str(filled(row, group_column))
    return [replace(example, group=group) for example in read([row])]

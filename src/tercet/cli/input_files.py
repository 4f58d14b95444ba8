"""The texts, contexts and pairs in the files of a command, each with the other columns of its row."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from tercet.cli.options import open_rows
from tercet.data.as_json import as_json, as_string
from tercet.data.columns import (
    Rest,
    context_and_rest,
    filled,
    pair_and_rest,
    text_and_rest,
    with_all,
    with_text,
)
from tercet.data.problems import gathered
from tercet.data.rows import STDIN, Row, is_regular_file
from tercet.data.sources import rows_in
from tercet.errors import DataError, SkippedRowsWarning
from tercet.files.structured import json_text, not_finite_places, null_if_not_finite
from tercet.records import Context
from tercet.settings.files import FileConfig, Format

if TYPE_CHECKING:
    from tercet.index.items import Item

Value = TypeVar("Value")

ID_COLUMNS = ("id", "_id")
"""Columns that hold the ids of candidates unless another one is chosen, in any case; BEIR has ``_id``."""


@dataclass(frozen=True, kw_only=True)
class InputFiles:
    """How a command reads its files. Rows that cannot be used are listed in one error.

    Args:
        keep_rest: whether the other columns of a row are used; in Parquet files they are not even read
            otherwise.
    """

    file: FileConfig
    skip_empty: bool = False
    keep_rest: bool = True

    def texts(
        self, source: str, column: Sequence[str] | None, *, what: str = "texts"
    ) -> Iterator[tuple[str, Rest]]:
        """The text of each row, and its other columns.

        Args:
            what: what the texts are, for the hint that somebody must type them.
        """
        return ((text, rest) for text, rest, _ in self.numbered_texts(source, column, what=what))

    def numbered_texts(
        self, source: str, column: Sequence[str] | None, *, what: str = "texts"
    ) -> Iterator[tuple[str, Rest, int]]:
        """As ``texts``, with the position of each row in the file, where skipped rows count too."""
        positions: dict[str, int] = {}

        def numbered() -> Iterator[Row]:
            for position, row in enumerate(open_rows(source, self.file, what=what)):
                positions[row.location] = position
                yield row

        rows = _at_least_one(numbered(), source)
        kept = with_text(rows, column) if self.skip_empty else rows
        return gathered(
            kept, lambda row: (*text_and_rest(row, column, keep=self.keep_rest), positions[row.location])
        )

    def contexts(self, source: str, column: str | Sequence[str] | None) -> Iterator[tuple[Context, Rest]]:
        """The context of each row, and its other columns."""
        rows = _at_least_one(open_rows(source, self.file, what="contexts"), source)
        kept = with_text(rows, column, default="context") if self.skip_empty else rows
        return gathered(kept, lambda row: context_and_rest(row, column, keep=self.keep_rest))

    def pairs(self, source: str, *, context: str, candidate: str) -> Iterator[tuple[Context, str, Rest]]:
        """The context and the candidate of each row, and its other columns."""
        rows = _at_least_one(open_rows(source, self.file, what="pairs"), source)
        kept = with_all(rows, (context, candidate)) if self.skip_empty else rows
        names = {"context": context, "candidate": candidate}
        return gathered(kept, lambda row: pair_and_rest(row, **names, keep=self.keep_rest))

    def items(self, source: str, column: Sequence[str] | None, id_column: str | None) -> "Iterator[Item]":
        """A candidate from each row, with the other columns as metadata."""
        rows = _at_least_one(open_rows(source, self.file, what="candidates"), source)
        kept = with_text(rows, column) if self.skip_empty else rows
        locations: dict[str, str] = {}

        def read(row: Row) -> "Item":
            item = _item(row, column, id_column)
            if item.id and locations.setdefault(item.id, row.location) != row.location:
                first = locations[item.id].rpartition(", ")[2]
                raise DataError(f"{row.location}: the id {item.id!r} occurs in {first} already")
            return item

        return gathered(kept, read)

    def count(self, source: str) -> int | None:
        """The number of rows, or None if it is unknown before reading."""
        return rows_in(source, file=self.file)


def _at_least_one(rows: Iterator[Row], source: str) -> Iterator[Row]:
    """The rows, of which there must be one."""
    first = next(rows, None)
    if first is None:
        raise DataError(f"{'standard input' if source == STDIN else source} has no rows: add at least one")
    yield from chain([first], rows)


def _item(row: Row, column: Sequence[str] | None, id_column: str | None) -> "Item":
    from tercet.index.item_forms import metadata_of
    from tercet.index.items import Item

    text, rest = text_and_rest(row, column)
    key = id_column or next((name for name in rest if name.lower() in ID_COLUMNS), None)
    id_ = "" if key is None else str(filled(row, key))
    _check_finite(row)
    joined = {name: row.columns[name] for name in (column or ())[:-1] if name in row.columns}
    others = {**joined, **{name: value for name, value in rest.items() if name != key}}
    return Item(id_, text, metadata_of(as_json(others), row.location))


def _check_finite(row: Row) -> None:
    """Raise if a cell has NaN or infinity, which no metadata can hold."""
    place = next(not_finite_places(row.columns), None)
    if place is not None:
        raise DataError(
            f"{row.location}: {place}, but an index stores finite numbers only: correct or empty the cell"
        )


def input_files(
    file_format: Format | None, *, delimiter: str, encoding: str, skip_empty: bool, keep_rest: bool = True
) -> InputFiles:
    """How a command with these options reads its files."""
    file = FileConfig(format=file_format, delimiter=delimiter, encoding=encoding)
    return InputFiles(file=file, skip_empty=skip_empty, keep_rest=keep_rest)


def checked_first(source: str, read: Callable[[], Iterator[Value]]) -> Iterator[Value]:
    """``read()``, after a first pass over a regular file that finds its problems before any work is done.

    Standard input cannot be read twice: there, a problem ends the stream.
    """
    if is_regular_file(source):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SkippedRowsWarning)  # the second pass issues it
            for _ in read():
                pass
    return read()


def with_columns(record: dict[str, Any], rest: Rest) -> dict[str, Any]:
    """The record with the other columns of its row under ``columns``, if there are any.

    Parquet files have NaN where a number is missing, which is null in JSON.
    """
    return {**record, "columns": null_if_not_finite(rest)} if rest else record


def json_line(record: dict[str, Any]) -> str:
    """The record as JSON on one line; types that JSON does not have become strings."""
    return json_text(record, default=as_string)

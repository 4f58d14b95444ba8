"""The rows of the input as records: what a kind of work needs of them, and what it passes on."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from tercet.data.as_json import as_json
from tercet.data.columns import context_and_rest, filled, pair_and_rest, text_and_rest, with_all, with_text
from tercet.data.problems import gathered
from tercet.data.remote import is_url, list_url
from tercet.data.rows import SUFFIXES, Row
from tercet.data.sources import open_source, rows_in
from tercet.errors import DataError
from tercet.files.structured import not_finite_places
from tercet.scale.work import Record
from tercet.settings.files import FileConfig

ID_COLUMNS = ("id", "_id")
"""Columns with ids unless another one is named, in any case."""


def input_files(name: str) -> list[str]:
    """The files of an input in the order of their names: a file, or all data files of a folder or URL."""
    if is_url(name):
        found = list_url(name)
    elif Path(name).is_dir():
        inside = (file.relative_to(name) for file in Path(name).rglob("*") if file.is_file())
        seen = (file for file in inside if not any(part.startswith(".") for part in file.parts))
        found = [str(Path(name) / file) for file in sorted(seen)]
    else:
        return [name]
    files = [file for file in found if Path(file.removesuffix(".gz")).suffix.lower() in SUFFIXES]
    own = [file for file in files if Path(file).name not in ("manifest.json", "shards.jsonl")]
    if not own:
        raise DataError(f"{name} has no data files: their names end in {', '.join(SUFFIXES)}, also with .gz")
    return own


def input_rows(names: Sequence[str], file: FileConfig | None = None) -> Iterator[Row]:
    """The rows of files, one file after the other."""
    return chain.from_iterable(open_source(name, file=file) for name in names)


def row_count(names: Sequence[str], file: FileConfig | None = None) -> int | None:
    """The number of rows; None if it is unknown before reading."""
    counts = [None if is_url(name) else rows_in(name, file=file) for name in names]
    return None if None in counts else sum(count or 0 for count in counts)


def text_records(
    rows: Iterable[Row],
    *,
    column: Sequence[str] | None,
    id_column: str | None,
    contexts: bool,
    skip_empty: bool,
) -> Iterator[Record]:
    """``id``, ``text`` and ``metadata`` of each row; ``contexts`` may be lists of turns."""
    default = "context" if contexts else "text"
    read = context_and_rest if contexts else text_and_rest
    kept, numbers = with_text(rows, column, default=default) if skip_empty else rows, count()

    def record(row: Row) -> Record:
        text, rest = read(row, column)
        return {"text": text, **_id_and_rest(row, rest, id_column, next(numbers))}

    return gathered(kept, record)


def pair_records(
    rows: Iterable[Row], *, context: str, candidate: str, id_column: str | None, skip_empty: bool
) -> Iterator[Record]:
    """``id``, ``context``, ``candidate`` and ``metadata`` of each row."""
    kept = with_all(rows, (context, candidate)) if skip_empty else rows
    alike, numbers = Alike(), count()

    def record(row: Row) -> Record:
        left, right, rest = pair_and_rest(row, context=context, candidate=candidate)
        own = {"context": alike.checked(left, row.location), "candidate": right}
        return {**own, **_id_and_rest(row, rest, id_column, next(numbers))}

    return gathered(kept, record)


class Alike:
    """Contexts that are all strings or all lists of turns, because a Parquet column has one type."""

    def __init__(self) -> None:
        self._is_text: bool | None = None

    def checked(self, context: str | Sequence[str], location: str) -> str | list[str]:
        """The context, if it is like the first."""
        is_text = isinstance(context, str)
        if self._is_text not in (None, is_text):
            first, now = ("texts", "a list of turns") if self._is_text else ("lists of turns", "a text")
            raise DataError(
                f"{location}: contexts must be of one kind: those before are {first}, this is {now}"
            )
        self._is_text = is_text
        return context if isinstance(context, str) else list(context)


def _id_and_rest(row: Row, rest: dict[str, object], id_column: str | None, number: int) -> Record:
    """The id of a row, by default its number, and its other columns."""
    key = id_column or next((name for name in rest if name.lower() in ID_COLUMNS), None)
    place = next(not_finite_places(rest), None)
    if place is not None:
        raise DataError(
            f"{row.location}: {place}, and JSON has finite numbers only: correct or empty the cell"
        )
    others = {name: value for name, value in rest.items() if name != key}
    return {"id": str(number) if key is None else str(filled(row, key)), "metadata": as_json(others)}

"""Problems of rows, gathered and reported together instead of one per run."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import TypeVar

from tercet.data.parquet_values import UnreadableColumnError
from tercet.data.rows import Row
from tercet.errors import DataError

Value = TypeVar("Value")

MAX_LISTED = 20
"""Rows that a message names."""

SKIP_ADVICE = "to skip rows with empty cells, give --skip-empty (in recipes and tasks: skip_empty = true)"


class EmptyCellError(DataError):
    """A cell that must hold a value is empty."""


class MissingColumnError(DataError):
    """A row does not have the column to read."""


def gathered(rows: Iterable[Row], read: Callable[[Row], Value]) -> Iterator[Value]:
    """``read`` of each row, as a stream.

    From the first row with a problem on, nothing comes any more: the other rows are only checked, and one
    error names all rows with a problem. A column that the first row does not have, or that cannot be read, is
    an error at once.
    """
    problems, is_first = Problems(), True
    for row in problems.readable(rows):
        try:
            value = read(row)
        except UnreadableColumnError:
            raise
        except DataError as error:
            if is_first and isinstance(error, MissingColumnError):
                raise
            problems.add(row.location, error)
        else:
            if not problems.count:
                yield value
        is_first = False
    problems.raise_if_any()


class LocationsByReason:
    """The locations of rows by reason; the first 20 are kept, and all are counted."""

    def __init__(self) -> None:
        self.count = 0
        self._locations: dict[str, list[str]] = {}

    def add_location(self, location: str, reason: str) -> None:
        """Count a row."""
        if self.count < MAX_LISTED:
            self._locations.setdefault(reason, []).append(location)
        self.count += 1

    @property
    def unlisted(self) -> int:
        """How many rows are counted but not kept."""
        return max(self.count - MAX_LISTED, 0)

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """Each reason with a file and its lines, such as ``lines 4, 9 and 17``."""
        for reason, locations in self._locations.items():
            split = [location.rpartition(", ") for location in locations]
            for file, parts in groupby(split, key=lambda part: part[0]):
                yield reason, file, _lines([place for _, _, place in parts])


class Problems(LocationsByReason):
    """The problems of rows, which become one error.

    Args:
        skippable: whether the reader can skip rows with empty cells.
    """

    def __init__(self, *, skippable: bool = True) -> None:
        super().__init__()
        self._skippable = skippable
        self._advice = ""
        self._last: DataError | None = None

    def add(self, location: str, error: DataError) -> None:
        """Count the error of a row."""
        self.add_location(location, str(error).removeprefix(f"{location}: "))
        if self._skippable and isinstance(error, EmptyCellError):
            self._advice = SKIP_ADVICE

    @contextmanager
    def gather(self, location: str) -> Iterator[None]:
        """Count the ``DataError`` of the block instead of raising it."""
        try:
            yield
        except UnreadableColumnError:
            raise
        except DataError as error:
            self.add(location, error)

    def readable(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows up to one that cannot be parsed; its error is raised now, or after those of other rows."""
        try:
            yield from rows
        except DataError as error:
            if not self.count:
                raise
            self._last = error

    def raise_if_any(self) -> None:
        """Raise one error that lists all problems, each on a line of its own."""
        if not self.count:
            return
        parts = [f"{file}, {lines}: {reason}" for reason, file, lines in self]
        if self.unlisted:
            parts.append(f"and {self.unlisted:,} more")
        if self._last is not None:
            parts.append(str(self._last))
        if len(parts) == 1:
            raise DataError("; ".join([*parts, self._advice] if self._advice else parts))
        count = self.count + (self._last is not None)
        lines = [f"{count:,} problems in the data: correct these rows", *(f"  {part}" for part in parts)]
        raise DataError("\n".join([*lines, self._advice] if self._advice else lines))


def _lines(places: list[str]) -> str:
    """``line 4``, or ``lines 4, 9 and 17``."""
    if len(places) == 1:
        return places[0]
    unit = places[0].partition(" ")[0]
    numbers = [place.removeprefix(f"{unit} ") for place in places]
    return f"{unit}s {', '.join(numbers[:-1])} and {numbers[-1]}"

"""The input of a job in numbered parts of equal size, the same ones each time it is read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from tercet.files.digest import rows_digest
from tercet.scale.work import Record


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows of the input."""

    number: int
    first_row: int
    records: list[Record]
    digest: str
    """Of the rows: a restarted job compares it."""


def parts_of(records: Iterable[Record], size: int) -> Iterator[Part]:
    """The rows in parts of ``size``; the last one may be smaller."""
    remaining, number = iter(records), 0
    while rows := list(islice(remaining, size)):
        yield Part(number, number * size, rows, rows_digest(rows))
        number += 1

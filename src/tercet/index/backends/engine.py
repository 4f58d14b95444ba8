"""What a database without transactions must do for ``JournalStore``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tercet.index.backends.products import Rows
from tercet.index.backends.tokens import Filter
from tercet.records import Floats, Ints


@dataclass(frozen=True, slots=True)
class Point:
    """A vector of a candidate. The first one also has the text and the metadata of the candidate."""

    number: int
    candidate: int
    id: str
    start: int | None
    stop: int | None
    is_first: bool
    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """The points that count: below a number, without those that were removed, and that meet a filter."""

    below: int
    removed: frozenset[int]
    filter: Filter = ()
    ids: tuple[str, ...] | None = None
    candidates: tuple[int, ...] | None = None
    only_first: bool = False


class Engine(Protocol):
    """A collection of points, and a few settings beside it. Every write can be repeated."""

    def settings(self) -> dict[str, Any] | None:
        """The settings; None if there is no collection."""

    def create(self, width: int, *, half: bool) -> None:
        """Create the collection and an empty place for the settings."""

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Replace the settings, all at once. Reads that start later see them."""

    def upsert(self, points: Sequence[Point], vectors: Floats) -> None:
        """Write points; those with the same numbers are replaced."""

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete points; unknown numbers are left out."""

    def delete_from(self, number: int) -> None:
        """Delete all points from a number on."""

    def replace_metadata(self, point: Point) -> None:
        """Replace the metadata of the candidate of a point, in all of its points."""

    def nearest(self, queries: Floats, k: int, scope: Scope, *, exact: bool, effort: int) -> Rows:
        """The ``k`` nearest points of each of ``[Q, D]``, all in one request."""

    def vectors(self, numbers: Ints) -> "tuple[list[Point], Floats]":
        """Points by number, without texts, in any order, and their vectors; unknown ones are left out."""

    def points(self, scope: Scope, *, limit: int | None = None) -> Iterator[Point]:
        """Points, with texts and metadata, in the order of their numbers."""

    def count(self, scope: Scope) -> int:
        """The exact number of points."""

    def drop(self) -> None:
        """Delete the collection and its settings."""

    def close(self) -> None:
        """Close connections."""

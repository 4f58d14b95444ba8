"""Rows with empty cells: skipped, and counted in a warning."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence

from tercet.data.problems import LocationsByReason
from tercet.data.rows import Row
from tercet.errors import SkippedRowsWarning


def is_empty(value: object) -> bool:
    """Whether a cell holds nothing, white space, or a list of nothing else."""
    if isinstance(value, (list, tuple)):
        return all(map(is_empty, value))
    return value is None or (isinstance(value, str) and not value.strip())


def without_empty(rows: Iterable[Row], empty_columns: Callable[[Row], Sequence[str]]) -> Iterator[Row]:
    """The rows of one source without empty cells; at its end, a warning counts the skipped ones.

    Args:
        empty_columns: the columns of a row that are empty and must not be.
    """
    reasons, total, file = LocationsByReason(), 0, ""
    for row in rows:
        total += 1
        file = row.location.rpartition(", ")[0]
        if empty := empty_columns(row):
            names = " and ".join(f"column {name!r}" for name in empty)
            reasons.add_location(row.location, f"{names} {'is' if len(empty) == 1 else 'are'} empty")
        else:
            yield row
    if reasons.count:
        warnings.warn(
            _note(reasons, file, total), SkippedRowsWarning, stacklevel=1
        )  # once per file, not per pass


def _note(reasons: LocationsByReason, file: str, total: int) -> str:
    """``3 of 120 rows of FILE skipped: column 'text' is empty (lines 4, 9 and 17)``."""
    parts = [f"{reason} ({lines})" for reason, _, lines in reasons]
    if reasons.unlisted:
        parts.append(f"and {reasons.unlisted:,} more")
    return f"{reasons.count:,} of {total:,} rows of {file} skipped: {', '.join(parts)}"

"""What the scores or labels of a file are: a range of numbers, or names of classes."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, isfinite

from tercet.data.columns import filled
from tercet.data.rows import Row
from tercet.errors import DataError

MAX_LABELS = 50
"""Texts with more distinct values than this are not labels."""


@dataclass(frozen=True, kw_only=True)
class ScoreColumn:
    """The range of scores, or the labels in alphabetical order."""

    min_score: float = 0.0
    max_score: float = 1.0
    labels: tuple[str, ...] = ()


def read_score_column(rows: Iterable[Row], column: str) -> ScoreColumn:
    """The scores or labels of a column. The range is in whole numbers, and at least 0 to 1."""
    numbers: list[float] = []
    names: set[str] = set()
    for row in rows:
        value = filled(row, column)
        number = _number(value)
        if number is None:
            names.add(str(value))
        else:
            numbers = [min([number, *numbers]), max([number, *numbers])]
        if len(names) > MAX_LABELS or (names and numbers):
            raise DataError(
                f"{row.location}: column {column!r} must have numbers, or at most {MAX_LABELS} different "
                f"labels, got {value!r}: choose another column (--column score=NAME)"
            )
    if names:
        return ScoreColumn(labels=tuple(sorted(names)))
    low, high = numbers or [0.0, 1.0]
    return ScoreColumn(
        min_score=min(0.0, floor(low)) if high <= 1 else floor(low), max_score=max(1.0, ceil(high))
    )


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if isfinite(number) else None

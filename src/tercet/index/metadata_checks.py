"""Checks of conditions against the metadata of all candidates; errors say what could have been asked."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from tercet.errors import InputError, UnmatchedConditionError
from tercet.index.conditions import EQUALITIES, ORDERINGS, SHOWN_VALUES, Condition
from tercet.inputs import SHOWN_CHARACTERS, listed, shortened


class Incomparable(NamedTuple):
    """How many candidates an ordering cannot compare, and one of them."""

    total: int
    id: str
    value: Any


class MetadataTable(Protocol):
    """The metadata of all candidates, wherever they are stored."""

    def is_empty(self) -> bool:
        """Whether there are no candidates."""

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""

    def has_column(self, column: str) -> bool:
        """Whether a candidate has a column."""

    def matches(self, conditions: Sequence[Condition]) -> bool:
        """Whether a candidate meets all conditions."""

    def incomparable(self, condition: Condition, others: Sequence[Condition]) -> Incomparable | None:
        """The candidates whose value cannot be compared, among those that meet the others."""

    def span(self, condition: Condition) -> tuple[Any, Any]:
        """The least and the largest value that an ordering compares."""

    def values(self, column: str) -> tuple[list[Any], int]:
        """The most frequent values of a column, at most ``SHOWN_VALUES``, and how many there are."""


def check_column(table: MetadataTable, column: str) -> None:
    """Raise if no candidate has a column in its metadata; the error lists the columns that exist."""
    if not table.has_column(column):
        known = listed(table.columns(), most=SHOWN_VALUES)
        which = f"the columns are {known}" if known else "the candidates have no metadata"
        raise UnmatchedConditionError(
            f"no candidate has {column!r} in its metadata: {which}", missing_column=column
        )


def check_conditions(table: MetadataTable, conditions: Sequence[Condition]) -> None:
    """Raise if no candidate has one of the columns, or if an ordering meets a value of another kind."""
    for condition in conditions:
        check_column(table, condition.column)
        if condition.operator in ORDERINGS:
            _check_comparable(table, condition, conditions)


def check_values(table: MetadataTable, conditions: Sequence[Condition]) -> None:
    """Raise if one of the conditions holds for no candidate; a list without values is meant."""
    for condition in conditions:
        if condition.values and not table.matches([condition]):
            raise UnmatchedConditionError(f"no candidate has {condition}: {_existing(table, condition)}")


def _check_comparable(table: MetadataTable, condition: Condition, others: Sequence[Condition]) -> None:
    """Raise if the value of a candidate cannot be compared, unless an equality excludes the candidate."""
    found = table.incomparable(condition, [other for other in others if other.operator in EQUALITIES])
    if found is None:
        return
    others_too = f" and {found.total - 1:,} more" if found.total > 1 else ""
    value = shortened(repr(found.value), SHOWN_CHARACTERS)
    raise InputError(
        f"{condition} cannot be compared with {value} of candidate {found.id!r}{others_too}: "
        "numbers compare with numbers and other strings with strings; "
        'exclude such values with "!=" or "not in"'
    )


def _existing(table: MetadataTable, condition: Condition) -> str:
    """The values that candidates have, the most frequent first, or the range of an ordering."""
    column = condition.column
    if condition.operator in ORDERINGS:
        low, high = table.span(condition)
        return f"the values of {column!r} go from {low!r} to {high!r}"
    values, count = table.values(column)
    return f"the values of {column!r} are {listed(values, most=SHOWN_VALUES, more=count - len(values))}"

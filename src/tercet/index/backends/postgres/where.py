"""Conditions on metadata as SQL over ``jsonb``, with the meaning that ``index.where_sql`` gives them."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

from tercet.index.conditions import ORDERINGS, Condition, as_number

SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
"""What ``str.strip`` removes."""
NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?0*[0-9]{1,3})?$"
"""As ``conditions.NUMBER``; a larger exponent is infinite or zero."""
LARGEST = "1.7976931348623157e308::numeric"
"""Texts that spell larger numbers are no numbers in Python either."""

ENTRY = "(candidate.metadata -> %s)"
FILLED = "coalesce(jsonb_typeof({entry}), 'null') <> 'null'"
ATOM = "({entry} #>> '{{}}')"


class Clause(NamedTuple):
    """A condition in SQL and the values of its placeholders."""

    sql: str
    values: list[Any]


def all_of(conditions: Iterable[Condition]) -> Clause:
    """The clause that holds for the candidates that meet all conditions."""
    clauses = [_clause(condition) for condition in conditions]
    return Clause(
        " AND ".join(["TRUE", *(clause.sql for clause in clauses)]),
        [value for clause in clauses for value in clause.values],
    )


def numeric(column: str) -> Clause:
    """The number of a column, also one that is stored as a text; NULL if there is none."""
    entry, atom = ENTRY, ATOM.format(entry=ENTRY)
    trimmed = f"btrim({atom}, %s)"
    spelled = f"CASE WHEN {trimmed} ~ %s AND length({trimmed}) <= 400 THEN ({trimmed})::numeric END"
    finite = f"(SELECT number FROM (SELECT {spelled}) AS spelled (number) WHERE abs(number) <= {LARGEST})"
    sql = f"CASE jsonb_typeof({entry}) WHEN 'number' THEN {atom}::numeric WHEN 'string' THEN {finite} END"
    text = [column, SPACES]
    return Clause(sql, [column, column, *text, NUMBER, *text, *text])


def textual(column: str) -> Clause:
    """The text of a column, by its bytes; NULL if there is none, or only spaces."""
    atom = ATOM.format(entry=ENTRY)
    sql = f"CASE jsonb_typeof({ENTRY}) WHEN 'string' THEN nullif(btrim({atom}), '') END"
    whole = f'CASE WHEN {sql} IS NOT NULL THEN {atom} END COLLATE "C"'
    return Clause(f"({whole})", [column, column, column])


def incomparable(condition: Condition) -> Clause:
    """The clause of the candidates whose value cannot be compared with the value of an ordering."""
    comparable = ordered_value(condition)
    entry = ENTRY
    filled = FILLED.format(entry=entry)
    empty = f"(jsonb_typeof({entry}) = 'string' AND btrim({ATOM.format(entry=entry)}) = '')"
    column = condition.column
    return Clause(
        f"{filled} AND {comparable.sql} IS NULL AND NOT {empty}", [column, *comparable.values, column, column]
    )


def ordered_value(condition: Condition) -> Clause:
    """What an ordering compares with its value: the text or the number of the column."""
    return textual(condition.column) if condition.is_textual else numeric(condition.column)


def _clause(condition: Condition) -> Clause:
    if condition.operator in ORDERINGS:
        stored, value = ordered_value(condition), condition.value
        if not condition.is_textual:
            value = _decimal(as_number(value) if isinstance(value, str) else value)
        compared = f"coalesce({stored.sql} {condition.operator} %s, FALSE)"
        return Clause(compared, [*stored.values, value])
    clause = _equality(condition)
    negated = condition.operator in ("!=", "not in")
    return Clause(f"NOT ({clause.sql})", clause.values) if negated else clause


def _equality(condition: Condition) -> Clause:
    """A bool equals the number 1 or 0, as in Python; a number equals no text."""
    texts = [value for value in condition.values if isinstance(value, str)]
    numbers = [_decimal(value) for value in condition.values if isinstance(value, (int, float))]
    atom = ATOM.format(entry=ENTRY)
    sql = (
        f"coalesce(CASE jsonb_typeof({ENTRY}) WHEN 'string' THEN {atom} = ANY(%s::text[])"
        f" WHEN 'number' THEN {atom}::numeric = ANY(%s::numeric[])"
        f" WHEN 'boolean' THEN (CASE {atom} WHEN 'true' THEN 1 ELSE 0 END) = ANY(%s::numeric[]) END, FALSE)"
    )
    column = condition.column
    clause = Clause(sql, [column, column, texts, column, numbers, column, numbers])
    if None not in condition.values:
        return clause
    filled = FILLED.format(entry=ENTRY)
    return Clause(f"({clause.sql} OR NOT ({filled}))", [*clause.values, column])


def _decimal(value: Any) -> Decimal:
    return Decimal(int(value)) if isinstance(value, int) else Decimal(repr(float(value)))

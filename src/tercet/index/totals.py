"""Totals of the tables of a database: how many rows each has, and the sum of their digests.

A digest of a row says nothing if the row is gone. The totals change in the transaction that changes the rows,
so they find rows that another program or a fault deleted, added or exchanged.
"""

from typing import NamedTuple

from tercet.index.row_digests import COLUMNS

TOTALS = """
CREATE TABLE totals (
    name TEXT PRIMARY KEY, rows INTEGER NOT NULL, total INTEGER NOT NULL, last INTEGER NOT NULL
);
"""
"""``last`` is the largest number that a row of the table ever had, or -1."""

TABLES = (*COLUMNS, "removed", "pending")
"""The tables that have totals."""

NUMBERED = ("candidates", "chunks")
"""The tables whose numbers are never used again."""


def summed(table: str) -> str:
    """The SQL expression whose sum over the rows is the total; of 32 bits, so that no sum overflows."""
    return f"{'digest' if table in COLUMNS else 'number'} & 4294967295"


class Total(NamedTuple):
    """What is recorded of a table, and what is there; None if nothing is recorded."""

    rows: int | None
    total: int | None
    last: int | None
    actual_rows: int
    actual_total: int
    actual_last: int

    @property
    def is_right(self) -> bool:
        """Whether the table has the rows that were written."""
        return self[:3] == self[3:]

    @property
    def is_exchanged(self) -> bool:
        """Whether there are as many rows as were written, but other ones."""
        return self.rows == self.actual_rows and self.total != self.actual_total

    @property
    def has_lost(self) -> bool:
        """Whether rows are missing, or it is not known how many there should be."""
        return self.rows is None or self.actual_rows < self.rows

    def __str__(self) -> str:
        if self.rows is None:
            return f"{self.actual_rows:,} rows, but their number is not recorded"
        if self.rows != self.actual_rows:
            return f"{self.actual_rows:,} rows, but {self.rows:,} were written"
        if self.total != self.actual_total:
            return "the rows are not those that were written"
        return f"the last number is {self.actual_last:,}, but {self.last:,} was used"


def total_sql(table: str) -> str:
    """The query of the six numbers of a ``Total``, all of one moment."""
    last = f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'" if table in NUMBERED else "NULL"
    recorded = ", ".join(
        f"(SELECT {name} FROM totals WHERE name = '{table}')" for name in ("rows", "total", "last")
    )
    return (
        f"SELECT {recorded}, count(*), coalesce(sum({summed(table)}), 0), coalesce(({last}), -1) FROM {table}"
    )

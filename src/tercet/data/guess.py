"""Which reader a file needs and which column has which role, guessed from column names and values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.files.parsing import parse_json
from tercet.inputs import check_choice, listed
from tercet.settings.data import READER_COLUMNS, READER_KINDS, ReaderKind

ROLE_NAMES: dict[str, tuple[str, ...]] = {
    "context": (
        "context", "question", "query", "prompt", "anchor", "premise", "post", "history",
        "sentence1", "sentence_1", "text_a", "text1", "text_1", "question1",
    ),
    "candidate": (
        "candidate", "answer", "reply", "response", "document", "passage", "hypothesis", "paraphrase",
        "sentence2", "sentence_2", "text_b", "text2", "text_2", "question2",
    ),
    "answer": ("answer", "reply", "response", "positive", "completion", "document", "passage"),
    "negatives": ("negatives", "negative", "hard_negatives", "hard_negative"),
    "score": ("score", "similarity", "similarity_score", "label", "relevance", "rating", "is_duplicate"),
    "candidates": ("candidates", "choices", "options", "replies", "responses"),
    "label": ("label", "correct", "gold", "answer_index", "index"),
    "scores": ("scores", "teacher_scores"),
    "source": ("source", "src", "source_text"),
    "target": ("target", "tgt", "target_text", "translation"),
    "turns": ("turns", "dialogue", "dialog", "conversation", "messages", "utterances"),
}  # fmt: skip
"""What columns of each role are usually called."""

LIST_ROLES = ("candidates", "scores", "turns")
"""Roles whose values are lists."""

GUESSED: tuple[ReaderKind, ...] = (
    "triplets",
    "scored",
    "choices",
    "dialogues",
    "pairs",
    "answers",
    "translations",
)
"""The readers that are tried, those with the most particular columns first."""


@dataclass(frozen=True, kw_only=True)
class GuessedData:
    """A reader and the column of each of its roles."""

    reader: ReaderKind
    columns: dict[str, str]

    @property
    def renamed(self) -> dict[str, str]:
        """The columns that a recipe must name, because they differ from the reader's defaults."""
        defaults = READER_COLUMNS[self.reader]
        return {role: name for role, name in self.columns.items() if defaults[role] != name}


def guess_data(
    rows: Sequence[Row],
    *,
    name: str,
    reader: ReaderKind | None = None,
    columns: Mapping[str, str] | None = None,
) -> GuessedData:
    """The reader and the columns of a file.

    Args:
        rows: the first rows of the file.
        name: how errors call the file.
        reader: the reader, if it is known.
        columns: the columns that are known, by role.

    Raises:
        DataError: no reader fits, or a role fits several columns; the message says what to give.
    """
    if not rows:
        raise DataError(f"{name} has no rows: nothing can be learnt from it")
    given = dict(columns or {})
    _check_given(given, _all_columns(rows), name)
    if reader is not None:
        check_choice("reader", reader, READER_KINDS)
    readers = GUESSED if reader is None else (reader,)
    problems: dict[str, str] = {}
    for each in readers:
        found = _match(each, rows, given, problems=problems)
        if found is not None:
            return _with_list_negatives(found, rows)
    raise DataError(_unclear(name, _all_columns(rows), problems=problems, readers=readers))


def _match(
    reader: ReaderKind, rows: Sequence[Row], given: Mapping[str, str], *, problems: dict[str, str]
) -> GuessedData | None:
    """The columns of a reader, or None if a required role has no column, or several could be meant."""
    roles = READER_COLUMNS[reader]
    if not given.keys() <= roles.keys():
        return None
    columns: dict[str, str] = {}
    for role, default in roles.items():
        fitting = [given[role]] if role in given else _named(role, rows)
        if len(fitting) == 1:
            columns[role] = fitting[0]
        elif len(fitting) > 1:
            problems[role] = f"{role} could be {' or '.join(map(repr, fitting))}"
            return None
        elif default is not None:
            return None
    if len(set(columns.values())) < len(columns):  # one column cannot have two roles
        return None
    return GuessedData(reader=reader, columns=columns)


def _named(role: str, rows: Sequence[Row]) -> list[str]:
    """The columns with a usual name of the role and fitting values."""
    names = [column for column in _all_columns(rows) if _key(column) in ROLE_NAMES.get(role, (role,))]
    return [name for name in names if role not in LIST_ROLES or _has_lists(rows, name)]


def _all_columns(rows: Sequence[Row]) -> list[str]:
    """The columns of all rows: in JSONL, a row may lack some."""
    return list(dict.fromkeys(column for row in rows for column in row.columns))


def _key(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip()).lower()


def _has_lists(rows: Sequence[Row], column: str) -> bool:
    return all(_is_list(row.columns[column]) for row in rows if column in row.columns)


def _is_list(value: object) -> bool:
    """Whether a value is a list, or a cell of CSV with a list in JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = parse_json(value)
        except ValueError:
            return False
    return isinstance(value, list)


def _with_list_negatives(found: GuessedData, rows: Sequence[Row]) -> GuessedData:
    """Rows with lists of negatives are answers, rows with one negative are triplets."""
    negatives = found.columns.get("negatives", "")
    if found.reader == "triplets" and any(_is_list(row.columns.get(negatives)) for row in rows):
        return replace(found, reader="answers")
    return found


def _check_given(given: Mapping[str, str], existing: Sequence[str], name: str) -> None:
    roles = sorted({role for reader in GUESSED for role in READER_COLUMNS[reader]})
    for role, column in given.items():
        check_choice("the role of --column", role, tuple(roles))
        if column not in existing:
            raise DataError(
                f"{name} has no column {column!r}, only {listed(existing)}: change --column {role}"
            )


def _unclear(
    name: str, existing: Sequence[str], *, problems: Mapping[str, str], readers: Sequence[ReaderKind]
) -> str:
    reasons = "; ".join(problems.values()) or "the names and values fit no reader"
    roles = "; ".join(f"{reader} ({', '.join(READER_COLUMNS[reader])})" for reader in readers)
    return (
        f"{name} has the columns {listed(existing)}, and {reasons}: say which column is what with --column "
        f"ROLE=NAME, and what a row is with --reader. Readers and their roles: {roles}"
    )

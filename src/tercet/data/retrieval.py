"""Retrieval sets, which are three files: texts, queries, and which text answers which query."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tercet.data.columns import check_column, number
from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.inputs import check_text
from tercet.records import Lesson


@dataclass(frozen=True, kw_only=True)
class RetrievalColumns:
    """What the columns of the three files are called."""

    key: str = "_id"
    text: str = "text"
    title: str = "title"
    """Put before a text, where there is one."""
    query_key: str = "query-id"
    text_key: str = "corpus-id"
    grade: str = "score"


def retrieval_lessons(
    corpus: Iterable[Row], queries: Iterable[Row], judgements: Iterable[Row], columns: RetrievalColumns
) -> Iterator[Lesson]:
    """Each query with a text that answers it, a lesson for each such pair; a grade of 0 means it does not."""
    texts, questions = _read(corpus, queries, columns)
    for row in judgements:
        if _grade(row, columns) > 0:
            yield Lesson(
                context=_found(questions, row, columns.query_key, "query"),
                candidates=(_found(texts, row, columns.text_key, "text"),),
                where=row.where,
            )


@dataclass(frozen=True, slots=True)
class Judged:
    """A retrieval set: texts and queries by their keys, and the grade of each text judged for a query."""

    texts: dict[str, str]
    queries: dict[str, str]
    grades: dict[str, dict[str, float]]


def judged_set(
    corpus: Iterable[Row], queries: Iterable[Row], judgements: Iterable[Row], columns: RetrievalColumns
) -> Judged:
    """All texts, and the queries that some text answers, with what was judged."""
    texts, questions = _read(corpus, queries, columns)
    grades: dict[str, dict[str, float]] = {}
    for row in judgements:
        _found(questions, row, columns.query_key, "query")
        _found(texts, row, columns.text_key, "text")
        graded = max(_grade(row, columns), 0.0)  # some sets call spam -1
        grades.setdefault(_key(row, columns.query_key), {})[_key(row, columns.text_key)] = graded
    answered = {query: each for query, each in grades.items() if any(value > 0 for value in each.values())}
    return Judged(texts, {query: questions[query] for query in answered}, answered)


def _read(
    corpus: Iterable[Row], queries: Iterable[Row], columns: RetrievalColumns
) -> tuple[dict[str, str], dict[str, str]]:
    """Texts and queries by their keys."""
    return (
        _by_key(corpus, columns.key, lambda row: _titled(row, columns.text, columns.title)),
        _by_key(queries, columns.key, lambda row: check_column(row, columns.text, check_text)),
    )


def _grade(row: Row, columns: RetrievalColumns) -> float:
    """A judgement without a grade says that the text answers."""
    return number(row, columns.grade) if columns.grade in row.columns else 1.0


def _by_key(rows: Iterable[Row], key: str, read: Callable[[Row], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows:
        name = _key(row, key)
        if name in found:
            raise DataError(f"{row.where}: the key {name!r} is there a second time")
        found[name] = read(row)
    return found


def _key(row: Row, column: str) -> str:
    return check_column(row, column, lambda value, _: str(value))


def _titled(row: Row, text: str, title: str) -> str:
    body = check_column(row, text, check_text)
    return f"{row.columns[title]}\n{body}" if row.columns.get(title) else body


def _found(texts: Mapping[str, str], row: Row, column: str, what: str) -> str:
    key = _key(row, column)
    if key not in texts:
        raise DataError(f"{row.where}: there is no {what} with the key {key!r}")
    return texts[key]

"""Rows of data files to lessons: what a model can learn from, whatever the file calls its columns.

Every reader streams. A row that cannot be used is an error that names its file and line.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from tercet.data.columns import check_column, filled, number, numbers
from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.inputs import check_context, check_text
from tercet.records import Lesson

_SENTENCE_ENDS = re.compile(r"(?<=[.!?。？！])\s+|\n+")
"""Good enough to cut text into pairs of neighbours; a wrong cut makes a short neighbour."""


def pair_lessons(
    rows: Iterable[Row],
    *,
    context: str = "context",
    candidate: str = "candidate",
    target: str = "score",
    labels: tuple[str, ...] = (),
) -> Iterator[Lesson]:
    """A context, a candidate and a number: how well they fit, or the place of their label in ``labels``."""
    for row in rows:
        yield Lesson(
            context=check_column(row, context, check_context),
            candidates=(check_column(row, candidate, check_text),),
            targets=(_label(row, target, labels) if labels else number(row, target),),
            where=row.where,
        )


def answer_lessons(
    rows: Iterable[Row], *, context: str = "context", answer: str = "response", negatives: str | None = None
) -> Iterator[Lesson]:
    """A context with its answer, and in ``negatives`` a wrong candidate or a list of them, perhaps empty."""
    for row in rows:
        wrong = () if negatives is None or filled(row, negatives) == [] else _texts(row, negatives)
        yield Lesson(
            context=check_column(row, context, check_context),
            candidates=(check_column(row, answer, check_text), *wrong),
            where=row.where,
        )


def choice_lessons(
    rows: Iterable[Row], *, context: str = "context", candidates: str = "candidates", label: str = "label"
) -> Iterator[Lesson]:
    """A context with candidates, and the place of the right one among them; the lesson has it first."""
    for row in rows:
        texts = _texts(row, candidates)
        place = number(row, label)
        if place not in range(len(texts)):
            raise DataError(
                f"{row.where}: column {label!r} must be from 0 to {len(texts) - 1}, the candidates' places, "
                f"got {place:g}"
            )
        right = int(place)
        yield Lesson(
            context=check_column(row, context, check_context),
            candidates=(texts[right], *texts[:right], *texts[right + 1 :]),
            where=row.where,
        )


def scored_lessons(
    rows: Iterable[Row], *, context: str = "context", candidates: str = "candidates", scores: str = "scores"
) -> Iterator[Lesson]:
    """A context with candidates, and a teacher's score of each; the lesson has the best first."""
    for row in rows:
        texts, given = _texts(row, candidates), numbers(row, scores)
        if len(texts) != len(given):
            raise DataError(f"{row.where}: {len(texts)} candidates need as many {scores}, got {len(given)}")
        order = sorted(range(len(texts)), key=lambda place: -given[place])
        yield Lesson(
            context=check_column(row, context, check_context),
            candidates=tuple(texts[place] for place in order),
            targets=tuple(given[place] for place in order),
            where=row.where,
        )


def dialogue_lessons(rows: Iterable[Row], *, turns: str = "turns") -> Iterator[Lesson]:
    """Every turn of a dialogue but the first, as the answer to all turns before it."""
    for row in rows:
        said = _texts(row, turns)
        for place in range(1, len(said)):
            yield Lesson(context=said[:place], candidates=(said[place],), where=row.where)


def document_lessons(rows: Iterable[Row], *, text: str = "text") -> Iterator[Lesson]:
    """Every sentence of a document but the first, as what follows the one before it."""
    for row in rows:
        sentences = [part.strip() for part in _SENTENCE_ENDS.split(check_column(row, text, check_text))]
        for before, after in pairwise(part for part in sentences if part):
            yield Lesson(context=before, candidates=(after,), where=row.where)


def _texts(row: Row, column: str) -> tuple[str, ...]:
    found = check_column(row, column, check_context)
    return (found,) if isinstance(found, str) else tuple(found)


def _label(row: Row, column: str, labels: tuple[str, ...]) -> float:
    value = filled(row, column)
    if str(value) not in labels:
        raise DataError(f"{row.where}: column {column!r} must be one of {', '.join(labels)}, got {value!r}")
    return float(labels.index(str(value)))

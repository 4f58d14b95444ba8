"""Rows to training and test examples, one function per kind of data set.

Every function is a stream: it holds one row at a time. A row that cannot be used is an error that names its
file and line. Keyword arguments are column names; ``settings.data.READER_COLUMNS`` has their defaults.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from tercet.data.columns import check_column, context_of, filled, number, numbers
from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.inputs import check_text
from tercet.records import Example
from tercet.text.sentences import split_sentences


def pair_examples(
    rows: Iterable[Row], *, context: str, candidate: str, score: str, labels: tuple[str, ...] = ()
) -> Iterator[Example]:
    """Examples of one candidate with a score.

    Args:
        labels: label names. If given, the score column holds labels, and the target is a label's number.
    """
    for row in rows:
        yield Example(
            context=context_of(row, context),
            candidates=(check_column(row, candidate, check_text),),
            targets=(_label_number(row, score, labels) if labels else number(row, score),),
            location=row.location,
        )


def answer_examples(
    rows: Iterable[Row], *, context: str, answer: str, negatives: str | None = None
) -> Iterator[Example]:
    """Examples of a context and its answer.

    Args:
        negatives: a column with one wrong candidate or a list of them, which may be empty.
    """
    for row in rows:
        wrong = () if negatives is None or filled(row, negatives) in ([], "[]") else _texts(row, negatives)
        yield Example(
            context=context_of(row, context),
            candidates=(check_column(row, answer, check_text), *wrong),
            location=row.location,
        )


def choice_examples(rows: Iterable[Row], *, context: str, candidates: str, label: str) -> Iterator[Example]:
    """Examples of several candidates; the one at the index in the label column comes first."""
    for row in rows:
        texts = _texts(row, candidates)
        right = _index(row, label, len(texts))
        yield Example(
            context=context_of(row, context),
            candidates=(texts[right], *texts[:right], *texts[right + 1 :]),
            location=row.location,
        )


def scored_examples(rows: Iterable[Row], *, context: str, candidates: str, scores: str) -> Iterator[Example]:
    """Examples of several candidates with a teacher's score of each, best first."""
    for row in rows:
        texts, values = _texts(row, candidates), numbers(row, scores)
        if len(texts) != len(values):
            raise DataError(
                f"{row.location}: column {scores!r} must have one score per candidate, "
                f"got {len(values)} for {len(texts)} candidates"
            )
        order = sorted(range(len(texts)), key=lambda position: -values[position])
        yield Example(
            context=context_of(row, context),
            candidates=tuple(texts[position] for position in order),
            targets=tuple(values[position] for position in order),
            location=row.location,
        )


def dialogue_examples(rows: Iterable[Row], *, turns: str) -> Iterator[Example]:
    """Examples of each turn but the first as the answer to all turns before it."""
    for row in rows:
        dialogue = _texts(row, turns)
        for position in range(1, len(dialogue)):
            yield Example(
                context=dialogue[:position], candidates=(dialogue[position],), location=row.location
            )


def translation_examples(rows: Iterable[Row], *, source: str, target: str) -> Iterator[Example]:
    """Examples of a translation, the context, with the text that it translates."""
    for row in rows:
        yield Example(
            context=check_column(row, target, check_text),
            candidates=(check_column(row, source, check_text),),
            location=row.location,
        )


def document_examples(rows: Iterable[Row], *, text: str) -> Iterator[Example]:
    """Examples of each sentence of a document with the sentence that follows it."""
    for row in rows:
        for before, after in pairwise(split_sentences(check_column(row, text, check_text))):
            yield Example(context=before, candidates=(after,), location=row.location)


def _texts(row: Row, column: str) -> tuple[str, ...]:
    value = context_of(row, column)
    return (value,) if isinstance(value, str) else tuple(value)


def _index(row: Row, column: str, count: int) -> int:
    index = number(row, column)
    if index not in range(count):
        raise DataError(
            f"{row.location}: column {column!r} must be the index of a candidate, from 0 to {count - 1}, "
            f"got {index:g}"
        )
    return int(index)


def _label_number(row: Row, column: str, labels: tuple[str, ...]) -> float:
    value = filled(row, column)
    if str(value) not in labels:
        raise DataError(
            f"{row.location}: column {column!r} must be one of {', '.join(labels)}, got {value!r}"
        )
    return float(labels.index(str(value)))

"""Readers and columns are recognized, and what cannot be is asked for."""

from typing import Any

import pytest

from tercet.data.guess import guess_data
from tercet.data.rows import Row
from tercet.data.score_column import read_score_column
from tercet.errors import DataError, InputError
from tercet.settings.data import READER_COLUMNS


def rows(*columns: dict[str, Any]) -> list[Row]:
    return [Row(f"my.csv, line {number}", each) for number, each in enumerate(columns, start=2)]


@pytest.mark.parametrize(
    ("columns", "reader", "found"),
    [
        ({"question": "a", "answer": "b"}, "answers", {"context": "question", "answer": "answer"}),
        ({"Query": "a", "Response": "b", "id": "1"}, "answers", {"context": "Query", "answer": "Response"}),
        ({"context": ["a", "b"], "reply": "c"}, "answers", {"context": "context", "answer": "reply"}),
        (
            {"sentence1": "a", "sentence2": "b", "score": "3.4"},
            "pairs",
            {"context": "sentence1", "candidate": "sentence2", "score": "score"},
        ),
        (
            {"premise": "a", "hypothesis": "b", "label": "neutral"},
            "pairs",
            {"context": "premise", "candidate": "hypothesis", "score": "label"},
        ),
        (
            {"anchor": "a", "positive": "b", "negative": "c"},
            "triplets",
            {"context": "anchor", "answer": "positive", "negatives": "negative"},
        ),
        (
            {"query": "a", "answer": "b", "negatives": ["c", "d"]},
            "answers",
            {"context": "query", "answer": "answer", "negatives": "negatives"},
        ),
        (
            {"question": "a", "options": '["b", "c"]', "label": 1},
            "choices",
            {"context": "question", "candidates": "options", "label": "label"},
        ),
        ({"turns": ["a", "b"]}, "dialogues", {"turns": "turns"}),
        ({"src": "a", "translation": "b"}, "translations", {"source": "src", "target": "translation"}),
    ],
)
def test_the_columns_say_what_a_row_is(columns: dict[str, Any], reader: str, found: dict[str, str]) -> None:
    guessed = guess_data(rows(columns, columns), name="my.csv")
    assert (guessed.reader, guessed.columns) == (reader, found)
    defaults = READER_COLUMNS[guessed.reader]
    assert guessed.renamed == {role: name for role, name in found.items() if name != defaults[role]}


def test_a_given_column_decides() -> None:
    both = rows({"question": "a", "context": "b", "answer": "c"})
    assert guess_data(both, name="my.csv", columns={"context": "question"}).columns["context"] == "question"
    named = guess_data(rows({"x": "a", "y": "b"}), name="my.csv", columns={"context": "x", "answer": "y"})
    assert named.reader == "answers"


def test_a_role_with_two_columns_is_asked_for() -> None:
    both = rows({"question": "a", "context": "b", "answer": "c"})
    with pytest.raises(DataError, match=r"context could be 'question' or 'context': .* --column ROLE=NAME"):
        guess_data(both, name="my.csv")


def test_unknown_columns_are_listed_with_the_readers() -> None:
    message = r"my.csv has the columns 'x', 'y', and .* fit no reader: .*--reader.* answers \(context, answer"
    with pytest.raises(DataError, match=message):
        guess_data(rows({"x": "a", "y": "b"}), name="my.csv")


def test_wrong_roles_columns_and_empty_files_are_refused() -> None:
    with pytest.raises(InputError, match=r"the role of --column must be one of .*, got 'text'"):
        guess_data(rows({"x": "a"}), name="my.csv", columns={"text": "x"})
    with pytest.raises(DataError, match=r"my.csv has no column 'z', only 'x'"):
        guess_data(rows({"x": "a"}), name="my.csv", columns={"context": "z"})
    with pytest.raises(DataError, match=r"my.csv has no rows"):
        guess_data([], name="my.csv")


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [(["0", "1"], 0, 1), (["0.2", "4.8"], 0, 5), ([1, 5], 1, 5), (["-0.3", "0.9"], -1, 1), (["0.4"], 0, 1)],
)
def test_the_range_of_scores_is_in_whole_numbers(values: list[Any], low: float, high: float) -> None:
    found = read_score_column(rows(*({"s": value} for value in values)), "s")
    assert (found.min_score, found.max_score, found.labels) == (low, high, ())


def test_texts_are_labels() -> None:
    found = read_score_column(rows(*({"s": each} for each in ("yes", "no", "yes"))), "s")
    assert found.labels == ("no", "yes")
    with pytest.raises(DataError, match=r"my.csv, line 3: column 's' must have numbers, or at most 50"):
        read_score_column(rows({"s": "yes"}, {"s": "1"}), "s")


def test_columns_of_all_rows_count() -> None:
    later = rows({"id": "1", "question": "a"}, {"question": "a", "answer": "b"})
    assert guess_data(later, name="my.jsonl").columns == {"context": "question", "answer": "answer"}
    assert guess_data(later, name="my.jsonl", columns={"answer": "answer"}).reader == "answers"


def test_a_row_may_lack_its_negative() -> None:
    some = rows({"anchor": "a", "positive": "b"}, {"anchor": "a", "positive": "b", "negative": "c"})
    assert guess_data(some, name="my.jsonl").reader == "triplets"
    assert guess_data(some[::-1], name="my.jsonl").reader == "triplets"
    lists = rows({"query": "a", "answer": "b"}, {"query": "a", "answer": "b", "negatives": ["c"]})
    assert guess_data(lists, name="my.jsonl").reader == "answers"


def test_one_column_never_has_two_roles() -> None:
    both = rows({"question": "a", "answer": "b"})
    for given in ({"context": "answer"}, {"context": "question", "answer": "question"}):
        with pytest.raises(DataError, match=r"my\.csv has the columns 'question', 'answer'"):
            guess_data(both, name="my.csv", columns=given)

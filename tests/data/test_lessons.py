"""Rows to lessons; every error names the file and the line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tercet
from tercet.data.lessons import answer_lessons, choice_lessons, dialogue_lessons, pair_lessons
from tercet.data.rows import Row, read_rows
from tercet.records import Lesson


def rows(tmp_path: Path, *contents: dict[str, Any]) -> Iterator[Row]:
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps(content) + "\n" for content in contents))
    return read_rows(file)


def test_pairs_with_scores(tmp_path: Path) -> None:
    read = rows(
        tmp_path,
        {"text_a": "a", "text_b": "b", "score": 2.5},
        {"text_a": ["x", "y"], "text_b": "z", "score": "4"},
    )
    assert list(pair_lessons(read, context="text_a", candidate="text_b")) == [
        Lesson("a", ("b",), (2.5,)),
        Lesson(("x", "y"), ("z",), (4.0,)),
    ]


def test_pairs_with_labels(tmp_path: Path) -> None:
    read = rows(tmp_path, {"context": "a", "candidate": "b", "label": "neutral"})
    names = ("entailment", "neutral", "contradiction")
    assert list(pair_lessons(read, target="label", labels=names)) == [Lesson("a", ("b",), (1.0,))]


def test_answers_with_and_without_negatives(tmp_path: Path) -> None:
    content = {"context": ["a", "b"], "response": "c", "wrong": ["d", "e"], "one": "f", "none": []}
    assert list(answer_lessons(rows(tmp_path, content))) == [Lesson(("a", "b"), ("c",))]
    assert list(answer_lessons(rows(tmp_path, content), negatives="wrong")) == [
        Lesson(("a", "b"), ("c", "d", "e"))
    ]
    assert list(answer_lessons(rows(tmp_path, content), negatives="one")) == [Lesson(("a", "b"), ("c", "f"))]
    assert list(answer_lessons(rows(tmp_path, content), negatives="none")) == [Lesson(("a", "b"), ("c",))]


def test_choices_put_the_right_candidate_first(tmp_path: Path) -> None:
    read = rows(tmp_path, {"context": "a", "candidates": ["b", "c", "d"], "label": 1})
    assert list(choice_lessons(read)) == [Lesson("a", ("c", "b", "d"))]


def test_every_turn_of_a_dialogue_answers_those_before(tmp_path: Path) -> None:
    read = rows(tmp_path, {"turns": ["a", "b", "c"]}, {"turns": ["alone"]})
    assert list(dialogue_lessons(read)) == [Lesson(("a",), ("b",)), Lesson(("a", "b"), ("c",))]


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (pair_lessons, {"context": "a", "candidate": "b"}, "there is no column 'score'"),
        (pair_lessons, {"context": "a", "candidate": " ", "score": 1}, "column 'candidate' is empty"),
        (
            pair_lessons,
            {"context": "a", "candidate": "b", "score": "high"},
            "column 'score' must be a number, got 'high'",
        ),
        (
            pair_lessons,
            {"context": "a", "candidate": "b", "score": None},
            "column 'score' is empty: label the row, or leave it out",
        ),
        (
            pair_lessons,
            {"context": "a", "candidate": "b", "score": "nan"},
            "must be a finite number, got 'nan'",
        ),
        (
            choice_lessons,
            {"context": "a", "candidates": ["b"], "label": 1},
            "must be from 0 to 0, the candidates' places, got 1",
        ),
        (choice_lessons, {"context": "a", "candidates": ["b"], "label": 0.5}, "places, got 0.5"),
        (choice_lessons, {"context": "a", "candidates": [], "label": 0}, "has no turns|column 'candidates'"),
        (dialogue_lessons, {"turns": ["a", 3]}, "turn 1 of column 'turns' must be a string, got int 3"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(
    reader: Any, content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    good = {
        "context": "a",
        "candidate": "b",
        "score": 1,
        "candidates": ["x"],
        "label": 0,
        "turns": ["a", "b"],
    }
    with pytest.raises(tercet.DataError, match=rf"data\.jsonl, line 2: .*({message})"):
        list(reader(rows(tmp_path, good, content)))


def test_a_label_that_is_not_listed_is_named(tmp_path: Path) -> None:
    read = rows(tmp_path, {"context": "a", "candidate": "b", "label": "-"})
    with pytest.raises(tercet.DataError, match="line 1: column 'label' must be one of yes, no, got '-'"):
        list(pair_lessons(read, target="label", labels=("yes", "no")))

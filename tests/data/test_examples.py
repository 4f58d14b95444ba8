"""Rows to examples. Errors name the file and the line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tercet.data.examples import answer_examples, pair_examples
from tercet.data.readers import READERS
from tercet.data.rows import Row, read_rows
from tercet.errors import DataError
from tercet.records import Example
from tercet.settings.data import READER_COLUMNS, ReaderKind


def rows(tmp_path: Path, *contents: dict[str, Any]) -> Iterator[Row]:
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps(content) + "\n" for content in contents))
    return read_rows(file)


def read(reader: ReaderKind, found: Iterator[Row]) -> list[Example]:
    """The examples of a reader with its default columns."""
    columns = {role: name for role, name in READER_COLUMNS[reader].items() if name is not None}
    return list(READERS[reader](found, **columns))


def test_pairs_with_scores(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        {"text_a": "a", "text_b": "b", "score": 2.5},
        {"text_a": ["x", "y"], "text_b": "z", "score": "4"},
    )
    assert list(pair_examples(found, context="text_a", candidate="text_b", score="score")) == [
        Example("a", ("b",), (2.5,)),
        Example(("x", "y"), ("z",), (4.0,)),
    ]


def test_pairs_with_labels(tmp_path: Path) -> None:
    found = rows(tmp_path, {"context": "a", "candidate": "b", "label": "neutral"})
    columns = {"context": "context", "candidate": "candidate", "score": "label"}
    names = ("entailment", "neutral", "contradiction")
    assert list(pair_examples(found, **columns, labels=names)) == [Example("a", ("b",), (1.0,))]


def test_answers_with_and_without_negatives(tmp_path: Path) -> None:
    content = {"context": ["a", "b"], "response": "c", "wrong": ["d", "e"], "one": "f", "none": []}
    expected = {None: ("c",), "wrong": ("c", "d", "e"), "one": ("c", "f"), "none": ("c",)}
    for negatives, candidates in expected.items():
        found = rows(tmp_path, content)
        examples = answer_examples(found, context="context", answer="response", negatives=negatives)
        assert list(examples) == [Example(("a", "b"), candidates)]


def test_choices_put_the_right_candidate_first(tmp_path: Path) -> None:
    found = rows(tmp_path, {"context": "a", "candidates": ["b", "c", "d"], "label": 1})
    assert read("choices", found) == [Example("a", ("c", "b", "d"))]


def test_every_turn_of_a_dialogue_answers_those_before(tmp_path: Path) -> None:
    found = rows(tmp_path, {"turns": ["a", "b", "c"]}, {"turns": ["alone"]})
    assert read("dialogues", found) == [Example(("a",), ("b",)), Example(("a", "b"), ("c",))]


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        ("pairs", {"context": "a", "candidate": "b"}, "column 'score' is missing"),
        ("pairs", {"context": "a", "candidate": " ", "score": 1}, "column 'candidate' is empty"),
        (
            "pairs",
            {"context": "a", "candidate": "b", "score": "high"},
            "column 'score' must be a number, got 'high'",
        ),
        (
            "pairs",
            {"context": "a", "candidate": "b", "score": None},
            "column 'score' is empty: fill it or remove the row",
        ),
        (
            "pairs",
            {"context": "a", "candidate": "b", "score": "nan"},
            "must be a finite number, got 'nan'",
        ),
        (
            "choices",
            {"context": "a", "candidates": ["b"], "label": 1},
            "must be the index of a candidate, from 0 to 0, got 1",
        ),
        ("choices", {"context": "a", "candidates": ["b"], "label": 0.5}, "from 0 to 0, got 0.5"),
        ("choices", {"context": "a", "candidates": [], "label": 0}, "has no turns|column 'candidates'"),
        ("dialogues", {"turns": ["a", 3]}, "turn 1 of column 'turns' must be a string, got int 3"),
    ],
)
def test_an_unusable_row_is_named(
    reader: ReaderKind, content: dict[str, Any], message: str, tmp_path: Path
) -> None:
    good = {
        "context": "a",
        "candidate": "b",
        "score": 1,
        "candidates": ["x"],
        "label": 0,
        "turns": ["a", "b"],
    }
    with pytest.raises(DataError, match=rf"data\.jsonl, line 2: .*({message})"):
        read(reader, rows(tmp_path, good, content))


def test_a_label_that_is_not_listed_is_named(tmp_path: Path) -> None:
    found = rows(tmp_path, {"context": "a", "candidate": "b", "label": "-"})
    with pytest.raises(DataError, match="line 1: column 'label' must be one of yes, no, got '-'"):
        list(
            pair_examples(
                found, context="context", candidate="candidate", score="label", labels=("yes", "no")
            )
        )

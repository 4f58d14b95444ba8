"""Texts and contexts from the columns of rows."""

from pathlib import Path

import pytest

from tercet.data.columns import contexts, pairs, text_and_rest, texts
from tercet.data.readers import read_examples
from tercet.data.rows import Row
from tercet.errors import DataError
from tercet.records import Context, Example
from tercet.settings.data import DataConfig


def row(**columns: object) -> Row:
    return Row("faq.csv, line 7", columns)


def test_the_only_column_is_the_text() -> None:
    assert list(texts([row(answer="yes")])) == ["yes"]


def test_the_column_called_text_is_read_if_there_are_several() -> None:
    assert list(texts([row(id="1", text="yes")])) == ["yes"]


def test_a_named_column_is_read() -> None:
    assert list(texts([row(id="1", reply="yes")], "reply")) == ["yes"]


def test_a_context_may_be_a_list_of_turns() -> None:
    rows = [row(context=["hi", "how are you?"], id=1), row(context="hi", id=2)]
    assert list(contexts(rows)) == [("hi", "how are you?"), "hi"]


def test_pairs_come_from_two_columns() -> None:
    rows = [row(question="why?", reply="because", n=1)]
    assert list(pairs(rows, context="question", candidate="reply")) == [("why?", "because")]


@pytest.mark.parametrize(
    ("columns", "column", "message"),
    [
        ({"id": "1", "reply": "x"}, None, r"choose the column to read \(--column\): 'id', 'reply'"),
        (
            {"id": "1", "reply": "x"},
            "text",
            "column 'text' is missing; the columns are 'id', 'reply': .* --column \\(columns in TOML\\)",
        ),
        ({"text": None}, None, "column 'text' must be a string, got None"),
        ({"text": " "}, None, "column 'text' is empty"),
        ({"text": "a\ud800"}, None, "column 'text' holds a lone surrogate"),
        ({}, "text", "column 'text' is missing; the row is empty: correct"),
    ],
)
def test_errors_name_the_column_and_the_line(
    columns: dict[str, object], column: str | None, message: str
) -> None:
    with pytest.raises(DataError, match=rf"faq\.csv, line 7: {message}"):
        list(texts([row(**columns)], column))


def test_several_columns_are_joined_in_the_order_given() -> None:
    given = row(title="Hours", body="We open at nine.", id=3)
    assert list(texts([given], ["body", "title"])) == ["We open at nine.\nHours"]
    assert text_and_rest(given, ["title", "body"]) == ("Hours\nWe open at nine.", {"id": 3})


def test_missing_columns_are_all_named() -> None:
    with pytest.raises(
        DataError, match="line 7: columns 'x', 'y' are missing; the columns are 'text': correct"
    ):
        list(texts([row(text="a")], ["x", "text", "y"]))


@pytest.mark.parametrize(
    ("cell", "context"),
    [
        ('["hi", "how are you?"]', ("hi", "how are you?")),
        (' ["hi"]', ("hi",)),
        ("[sic] hello", "[sic] hello"),
        ("[1, 2]", "[1, 2]"),
        ('["hi", 2]', '["hi", 2]'),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_a_json_list_of_strings_in_a_csv_cell_is_a_list_of_turns(cell: str, context: Context) -> None:
    assert list(contexts([Row("a.csv, line 2", {"context": cell}, untyped=True)])) == [context]
    assert list(contexts([Row("a.jsonl, line 2", {"context": cell})])) == [cell]  # JSON has lists of its own


def test_recipes_read_lists_from_csv_cells(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        'context,candidates,label,scores\n"[""a"", ""b""]","[""c"", ""d""]",1,"[0.5, 2]"\n'
    )
    config = DataConfig(files=("a.csv",), reader="choices")
    assert read_examples(config, root=tmp_path) == [Example(("a", "b"), ("d", "c"))]
    config = DataConfig(files=("a.csv",), reader="scored")
    assert read_examples(config, root=tmp_path) == [Example(("a", "b"), ("d", "c"), (2.0, 0.5))]

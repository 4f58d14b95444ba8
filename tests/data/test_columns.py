import pytest

import tercet
from tercet.data.columns import contexts, pairs, texts
from tercet.data.rows import Row


def row(**columns: object) -> Row:
    return Row("faq.csv, line 7", columns)


def test_the_only_column_is_the_text() -> None:
    assert list(texts([row(answer="yes")])) == ["yes"]


def test_the_column_called_text_is_the_text_among_others() -> None:
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
        ({"id": "1", "reply": "x"}, None, r"say which column to read \(--column\): 'id', 'reply'"),
        ({"id": "1", "reply": "x"}, "text", "there is no column 'text', only 'id', 'reply'"),
        ({"text": None}, None, "column 'text' must be a string, got None"),
        ({"text": " "}, None, "column 'text' is empty"),
        ({"text": "a\ud800"}, None, "column 'text' holds a lone surrogate"),
        ({}, "text", "there is no column 'text', only none at all"),
    ],
)
def test_a_bad_cell_is_named_with_its_line(
    columns: dict[str, object], column: str | None, message: str
) -> None:
    with pytest.raises(tercet.DataError, match=rf"faq\.csv, line 7: {message}"):
        list(texts([row(**columns)], column))

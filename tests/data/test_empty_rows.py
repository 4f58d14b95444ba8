"""Rows with empty cells: listed all at once, or skipped and counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tercet.data.columns import texts, with_text
from tercet.data.readers import read_examples
from tercet.data.rows import Row, read_rows
from tercet.errors import DataError, InputError, SkippedRowsWarning
from tercet.records import Example
from tercet.settings.data import DataConfig


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("context,answer\nq1,a1\n,a2\nq3,\nq4,a4\n  ,a5\n")
    return path


def numbered(values: list[object]) -> Iterator[Row]:
    return (Row(f"a.jsonl, line {n}", {"text": value}) for n, value in enumerate(values, start=1))


def test_all_rows_with_a_problem_are_in_one_error(file: Path) -> None:
    with pytest.raises(DataError) as error:
        list(texts(read_rows(file), "context"))
    assert str(error.value).startswith(f"{file}, lines 3 and 6: column 'context' is empty: ")
    assert str(error.value).endswith("give --skip-empty (in recipes and tasks: skip_empty = true)")


def test_different_problems_are_listed_one_after_the_other() -> None:
    with pytest.raises(DataError) as error:
        list(texts(numbered(["a", " ", 7, ""])))
    title, first, second, _ = str(error.value).split("\n")
    assert title == "3 problems in the data: correct these rows"
    assert first.startswith("  a.jsonl, lines 2 and 4: column 'text' is empty")
    assert second == "  a.jsonl, line 3: column 'text' must be a string, got int 7"


def test_at_most_20_rows_are_listed_and_the_others_counted() -> None:
    with pytest.raises(
        DataError, match=r"25 problems(?s:.*)lines 1, 2, .*, 19 and 20: .*\n  and 5 more\n"
    ) as error:
        list(texts(numbered([""] * 25)))
    assert "21" not in str(error.value)


def test_nothing_comes_after_the_first_problem_and_all_before_it_is_a_stream() -> None:
    found = texts(numbered(["a", "b", "", "d"]))
    assert [next(found), next(found)] == ["a", "b"]
    with pytest.raises(DataError, match="line 3: column 'text' is empty"):
        next(found)


def test_a_row_that_cannot_be_parsed_is_listed_with_the_problems_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n{"text": "fine"}\n{"text"\n')
    with pytest.raises(
        DataError, match=r"2 problems(?s:.*)line 1: column 'text' is empty(?s:.*)line 3: not valid"
    ):
        list(texts(read_rows(tmp_path / "a.jsonl")))


def test_a_column_that_does_not_exist_is_named_once() -> None:
    with pytest.raises(
        DataError, match=r"^a\.jsonl, line 1: column 'x' is missing; the columns are 'text': [^\n]*$"
    ):
        list(texts(numbered(["a", "b"]), "x"))


def test_skipped_rows_are_counted_in_a_warning(file: Path) -> None:
    message = rf"2 of 5 rows of {file} skipped: column 'context' is empty \(lines 3 and 6\)"
    with pytest.warns(SkippedRowsWarning, match=message):
        assert list(texts(with_text(read_rows(file), "context"), "context")) == ["q1", "q3", "q4"]


@pytest.mark.parametrize("value", [None, "", " \n", [], ["", " "]])
def test_nothing_white_space_and_lists_of_them_are_empty(value: object) -> None:
    with pytest.warns(SkippedRowsWarning, match="1 of 2 rows"):
        assert [row.columns["text"] for row in with_text(numbered([value, "a"]))] == ["a"]


def test_a_misspelt_column_skips_nothing() -> None:
    with pytest.raises(DataError, match="column 'x' is missing"):
        list(texts(with_text(numbered(["a"]), "x"), "x"))


def test_several_columns_are_empty_only_together(file: Path) -> None:
    both = ["context", "answer"]
    assert list(texts(with_text(read_rows(file), both), both)) == ["q1\na1", "a2", "q3", "q4\na4", "a5"]


def test_a_recipe_skips_rows_in_which_a_role_is_empty(file: Path) -> None:
    config = DataConfig(files=(str(file),), reader="answers")
    with pytest.raises(
        DataError, match=r"lines 3 and 6: column 'context' is empty(?s:.*)line 4: column 'answer' is"
    ):
        read_examples(config)
    skipping = DataConfig(files=(str(file),), reader="answers", skip_empty=True)
    with pytest.warns(SkippedRowsWarning, match="3 of 5 rows"):
        assert read_examples(skipping) == [Example("q1", ("a1",)), Example("q4", ("a4",))]


def test_an_empty_list_of_negatives_is_not_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"context": "a", "answer": "b", "negatives": []}\n')
    config = DataConfig(
        files=(str(tmp_path / "a.jsonl"),),
        reader="answers",
        columns={"negatives": "negatives"},
        skip_empty=True,
    )
    assert read_examples(config) == [Example("a", ("b",))]


def test_retrieval_refuses_to_skip_rows() -> None:
    with pytest.raises(InputError, match="skip_empty applies to rows of one file"):
        DataConfig(files=("a", "b", "c"), reader="retrieval", skip_empty=True)

"""CSV files with other delimiters than the comma."""

from pathlib import Path

import pytest

from tercet.data.delimited import SAMPLE_LINES, sniff_delimiter
from tercet.data.rows import read_rows
from tercet.errors import DataError, InputError
from tercet.settings.files import FileConfig


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("id;text\n1;a, b\n2;c, d\n", ";"),
        ("id\ttext\n1\ta, b; c\n", "\t"),
        ("id|text\n1|a\n", "|"),
        ("id,text\n1,a;b\n2,c;d\n", ","),
        ('"last, first";text\n"a, b";c\n', ";"),  # the header has a comma, within quotes
        ("id;price, in euros\n1;2\n2;3\n", ";"),  # a comma in the header only
        ("text\nhello, world; again\n", ","),  # one column has no delimiter
        ("", ","),
        ("id;text\n1;a\n2\n3;b\n", ";"),  # one wrong row does not change the delimiter
        ("a;b;c,d\n1;2;3,5\n", ";"),  # both fit: the one with more columns
    ],
)
def test_the_delimiter_is_the_one_that_fits_the_header_and_the_rows(content: str, delimiter: str) -> None:
    assert sniff_delimiter(content.splitlines(keepends=True)) == delimiter


def test_a_quoted_cell_may_be_longer_than_the_lines_that_are_looked_at(tmp_path: Path) -> None:
    cell = "one; two\n" * (2 * SAMPLE_LINES)
    (tmp_path / "a.csv").write_text(f'id,text\n1,x\n2,"{cell}"\n')
    assert [row.columns["id"] for row in read_rows(tmp_path / "a.csv")] == ["1", "2"]


def test_a_row_that_the_sample_ends_within_does_not_count() -> None:
    rows = ["1;x,y;2\n"] * (SAMPLE_LINES - 2)  # three cells with semicolons, two with commas
    lines = ["a;b,c;d\n", *rows, '9;"p,q\n']  # the last one has two cells with either
    assert len(lines) == SAMPLE_LINES
    assert sniff_delimiter(lines) == ";"


def test_a_semicolon_file_of_excel_needs_no_option(tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_bytes('\ufeffid;Frage\r\n1;"Wann; und wo?"\r\n2;Wie, bitte?\r\n'.encode())
    assert [row.columns for row in read_rows(path)] == [
        {"id": "1", "Frage": "Wann; und wo?"},
        {"id": "2", "Frage": "Wie, bitte?"},
    ]


@pytest.mark.parametrize("typed", ["\t", "tab", r"\t"])
def test_a_given_delimiter_is_used(typed: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\tc,d\n1,2\t3,4\n")
    (row,) = read_rows(tmp_path / "a.csv", FileConfig(delimiter=typed))
    assert row.columns == {"a,b": "1,2", "c,d": "3,4"}


@pytest.mark.parametrize("delimiter", [";;", '"', "\n"])
def test_a_delimiter_is_one_character(delimiter: str) -> None:
    with pytest.raises(InputError, match="delimiter must be one character"):
        FileConfig(delimiter=delimiter)


def test_a_row_of_another_size_advises_on_the_delimiter(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\nhello, world\n")
    with pytest.raises(
        DataError, match=r"line 2: the row has 2 cells, the header has 1: quote cells .* --delimiter"
    ):
        list(read_rows(tmp_path / "a.csv"))

"""Rows of files in every format."""

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from tercet.data.rows import count_rows, read_rows
from tercet.errors import DataError, InputError
from tercet.settings.files import FileConfig

CONTENTS = {
    "rows.jsonl": '{"text": "하나", "n": "1"}\n{"text": "two, \\"and\\" more", "n": "2"}\n',
    "rows.csv": 'text,n\n하나,1\n"two, ""and"" more",2\n',
    "rows.tsv": 'text\tn\n하나\t1\ntwo, "and" more\t2\n',
}
EXPECTED = [{"text": "하나", "n": "1"}, {"text": 'two, "and" more', "n": "2"}]


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_every_format_has_the_same_rows(name: str, compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / (name + ".gz" if compressed else name)
    content = CONTENTS[name].encode()
    path.write_bytes(gzip.compress(content) if compressed else content)
    assert [row.columns for row in read_rows(path)] == EXPECTED


def test_parquet_has_the_same_rows(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pylist(EXPECTED), tmp_path / "rows.parquet")
    assert [row.columns for row in read_rows(tmp_path / "rows.parquet")] == EXPECTED


def test_a_text_file_has_one_column(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_bytes("\ufeffone\r\n둘\nthree".encode())
    assert [row.columns for row in read_rows(path)] == [{"text": "one"}, {"text": "둘"}, {"text": "three"}]


def test_standard_input_is_text_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"one\ntwo\n")))
    assert [(row.location, row.columns["text"]) for row in read_rows("-")] == [
        ("standard input, line 1", "one"),
        ("standard input, line 2", "two"),
    ]


def test_a_json_string_per_line_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('"one"\n"two\\nlines"\n')
    assert [row.columns["text"] for row in read_rows(path)] == ["one", "two\nlines"]


def test_line_numbers_account_for_multiline_cells(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('text\n"one\ntwo\nthree"\nfour\n')
    assert [row.location.split(", ")[1] for row in read_rows(path)] == ["line 2", "line 5"]


def test_a_cell_may_hold_a_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"text\n{'x' * 1_000_000}\n")
    assert len(next(read_rows(path)).columns["text"]) == 1_000_000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\nbr\xffken\n", "line 2: byte 3 is not UTF-8"),
        ("a.jsonl", b'{"a": 1}\n{"a"\n', "line 2: not valid JSON"),
        ("a.jsonl", b"[1]\n", "line 1: a line must be a JSON object or string, got list"),
        ("a.csv", b"a,b\n1,2\n3\n", "line 3: the row has 1 cell, the header has 2"),
        ("a.csv", b'a,b\n1,"2\n', "line 2: unexpected end of data"),
        ("a.csv", b"a,a\n1,2\n", "line 1: several columns have the same name: 'a'"),
        ("a.jsonl", b"[" * 100_000, "line 1: values are nested more than 100 levels deep"),
        ("a.tsv", b"a\tb\n1\t2\t3\n", "line 2: the row has 3 cells, the header has 2"),
        ("a.txt.gz", b"no gzip", "is not a complete gzip file"),
        ("a.txt.gz", gzip.compress(b"text\n" * 999, mtime=0)[:-9], "is not a complete gzip file"),
        ("a.parquet", b"no parquet", "is not a complete Parquet file"),
        ("a.docx", b"", "is unknown: use a suffix"),
    ],
)
def test_errors_name_the_file_and_the_line(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}.*{message}"):
        list(read_rows(tmp_path / name))


def test_blank_lines_between_rows_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('"one"\n\n"two"\n')
    (tmp_path / "a.csv").write_text("text\none\n\ntwo\n")
    (tmp_path / "a.txt").write_text("one\n\n \t\ntwo\n")
    for name in ("a.jsonl", "a.csv", "a.txt"):
        assert [row.columns["text"] for row in read_rows(tmp_path / name)] == ["one", "two"]
    assert [row.location for row in read_rows(tmp_path / "a.txt")][1] == f"{tmp_path / 'a.txt'}, line 4"
    assert count_rows(tmp_path / "a.txt") == 2


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*nothing\.txt"):
        list(read_rows(tmp_path / "nothing.txt"))
    with pytest.raises(DataError, match="is a folder"):
        list(read_rows(tmp_path, FileConfig(format="text")))


def test_an_unknown_format_is_named_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="format must be one of text, jsonl, json, csv, tsv, parquet, got 'xml'"
    ):
        list(read_rows(tmp_path / "a.xml", FileConfig(format="xml")))  # type: ignore[arg-type]


def test_rows_are_counted_if_they_are_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo")
    (tmp_path / "a.csv").write_text("a\n1\n")
    assert count_rows(tmp_path / "a.txt") == 2
    assert count_rows(tmp_path / "a.csv") is None
    assert count_rows("-") is None

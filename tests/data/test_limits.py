"""Files that would fill the memory are refused before they do."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tercet.data.rows import count_rows, read_rows
from tercet.errors import DataError

ROOT = Path(__file__).parents[2]

MEASURED = """
import re, sys
from pathlib import Path
from tercet.data.rows import read_rows
from tercet.errors import DataError
def peak():  # ru_maxrss would include the memory of the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
try:
    for row in read_rows(sys.argv[1]):
        row.columns[sys.argv[2]]
except DataError as error:
    print(error)
print((peak() - before) // 1024)
"""
"""Prints the error, and how many MB reading a file took."""


def measured(path: Path, column: str) -> list[str]:
    """The error, if there is one, and the MB that reading a column took, with a limit of 10 MiB."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "TERCET_MAX_LINE_BYTES": str(10 << 20)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), column],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("suffix", [".txt", ".jsonl", ".csv", ".tsv", ".json"])
def test_a_gzip_bomb_of_one_line_takes_no_more_memory_than_the_limit(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"bomb{suffix}.gz"
    block = gzip.compress(b"x" * (20 << 20), compresslevel=1)
    path.write_bytes(block * 20)  # 400 MB in one line
    error, used = measured(path, "text")
    assert "line 1: the line has more than 10,485,760 bytes" in error
    assert "TERCET_MAX_LINE_BYTES" in error
    assert int(used) < 60


def test_a_parquet_bomb_takes_no_memory_whether_it_is_used_or_not(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"text": ["short"], "bomb": ["x" * (400 << 20)]})
    parquet.write_table(table, tmp_path / "bomb.parquet", compression="zstd", use_dictionary=False)
    assert (tmp_path / "bomb.parquet").stat().st_size < 1 << 20
    (used,) = measured(tmp_path / "bomb.parquet", "text")
    assert int(used) < 200  # mostly pyarrow itself
    error, used = measured(tmp_path / "bomb.parquet", "bomb")
    assert "a value in column 'bomb' is 419,430," in error
    assert int(used) < 200


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_line_may_be_as_long_as_the_limit(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "100")
    path = tmp_path / "a.txt"
    length = 100 if encoding == "utf-8" else 48
    path.write_bytes(f"{'x' * length}\r\n{'y' * length}\n{'z' * length}".encode(encoding))
    assert [len(row.columns["text"]) for row in read_rows(path)] == [length] * 3
    for end in ("\n", "", "\r\r\r\n", "x" * 100):
        path.write_bytes(f"short\n{'x' * 101}{end}".encode(encoding))
        with pytest.raises(DataError, match=r"a\.txt, line 2: the line has more than 100 bytes"):
            list(read_rows(path))


def test_counting_rows_does_not_read_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "100")
    (tmp_path / "a.txt").write_text("x" * 101)
    with pytest.raises(DataError, match="line 1: the line has more than 100 bytes"):
        count_rows(tmp_path / "a.txt")


@pytest.mark.parametrize("content", ["x\n" * 60, "\n" * 101], ids=["lines", "blank"])
def test_unpacked_bytes_are_limited(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_MAX_UNPACKED_BYTES", "100")
    (tmp_path / "a.txt").write_text(content)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(content.encode()))
    list(read_rows(tmp_path / "a.txt"))  # the limit is for compressed files
    message = r"a\.txt\.gz has more than 100 bytes after decompression: .*TERCET_MAX_UNPACKED_BYTES"
    with pytest.raises(DataError, match=message):
        list(read_rows(tmp_path / "a.txt.gz"))


@pytest.mark.parametrize("row", ['"' + "x\n" * 60 + '"', '"x\n",' * 30 + "x"], ids=["a cell", "many cells"])
def test_a_csv_row_of_many_lines_is_limited(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "100")
    (tmp_path / "a.csv").write_text(f"text\nfine\n{row}\n")
    with pytest.raises(DataError, match=r"a\.csv, line \d+: a row has more than 100 bytes: .*not closed"):
        list(read_rows(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_text("text\n" + "fine and short\n" * 100)
    assert len(list(read_rows(tmp_path / "a.csv"))) == 100


def test_a_json_array_is_limited_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_MAX_JSON_BYTES", "100")
    (tmp_path / "a.json").write_text("[\n" + '"text",\n' * 20 + '"end"]')
    with pytest.raises(DataError, match=r"a\.json has more than 100 bytes.*\.jsonl.*TERCET_MAX_JSON_BYTES"):
        list(read_rows(tmp_path / "a.json"))


def test_names_of_columns_are_limited(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x" * 10_001 + "\nrow\n")
    with pytest.raises(DataError, match=r"a\.csv, line 1: the name of a column has more than 10,000 char"):
        list(read_rows(tmp_path / "a.csv"))

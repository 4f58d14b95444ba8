"""Files that cannot be read: the error names the file and what to do."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tercet.data.qrels import read_qrels
from tercet.data.rows import read_rows
from tercet.errors import DataError
from tercet.settings.files import FileConfig

ROOT = Path(__file__).parents[2]
WHOLE = gzip.compress(os.urandom(2000))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"plain text\n", "Not a gzipped file"),
        (WHOLE[:1000], "ended before the end-of-stream"),
        (WHOLE[:20] + b"\xff" * 300 + WHOLE[320:], "."),
        (gzip.compress(b"fine\n") + b"rest", "Not a gzipped file"),
    ],
    ids=["plain", "short", "damaged", "rest"],
)
def test_a_broken_gzip_file_is_named(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(content)
    with pytest.raises(DataError, match=rf"a\.txt\.gz is not a complete gzip file \(.*{reason}.*\): copy or"):
        list(read_rows(tmp_path / "a.txt.gz", FileConfig(encoding="latin-1")))


WITHOUT_RIGHTS = """
import os, sys
import pyarrow.compute, pyarrow.parquet
from tercet.data.rows import read_rows
from tercet.errors import DataError
if os.geteuid() == 0:
    os.setuid(65534)  # root may read every file
for name in sys.argv[1:]:
    try:
        list(read_rows(name))
    except DataError as error:
        print(error)
"""


def test_a_missing_permission_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "closed").mkdir(mode=0o700)
    files = [tmp_path / "a.csv", tmp_path / "a.parquet", tmp_path / "closed" / "a.txt"]
    for file in files:
        file.touch(mode=0o000)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS, *map(str, files)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    advice = "change it (chmod u+r), or copy the file"
    assert done.stdout.splitlines() == [f"no permission to read {file}: {advice}" for file in files]


@pytest.mark.parametrize("name", ["folder.csv", "folder.parquet"])
def test_a_folder_with_the_name_of_a_file_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    for file in (FileConfig(), FileConfig(format="csv")):
        with pytest.raises(DataError, match=f"{name} is a folder: give a file"):
            list(read_rows(tmp_path / name, file))


@pytest.mark.parametrize("name", ["x" * 5000 + ".csv", "a\0b.csv", "x" * 5000 + ".parquet", "a\0b.parquet"])
def test_an_impossible_name_is_an_error(name: str) -> None:
    with pytest.raises(DataError):
        list(read_rows(name))


def test_a_line_break_within_a_field_of_qrels_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "qrels.csv").write_bytes(b"q1,d1,1\nq1,d\r2,1\n")
    with pytest.raises(DataError, match=r"qrels\.csv, line 2: new-line character seen"):
        list(read_qrels(tmp_path / "qrels.csv", FileConfig()))

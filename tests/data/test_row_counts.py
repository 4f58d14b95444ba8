"""The number of rows before a file is read."""

import gzip
from pathlib import Path

import pytest

from tercet.data import row_counts
from tercet.data.row_counts import quick_count
from tercet.data.rows import read_rows
from tercet.data.sources import rows_in
from tercet.settings.files import FileConfig

CONTENTS = {
    "a.txt": "one\ntwo\n\nthree",
    "a.jsonl": '{"text": "one"}\n\n"two"\n"three"\n',
    "a.csv": 'id,text\n1,"one\n\nand a half"\n2,two\n\n3,three\n',
    "a.tsv": 'id\ttext\n1\t"one\n2\ttwo\n3\tthree\n',
}


@pytest.mark.parametrize("name", CONTENTS)
def test_rows_are_counted_in_each_format_and_gzipped(name: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
    plain.write_text(CONTENTS[name])
    packed.write_bytes(gzip.compress(CONTENTS[name].encode()))
    assert quick_count(str(plain)) == quick_count(str(packed)) == 3


def test_the_rows_of_parquet_are_known(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": ["one", "two"]}), tmp_path / "a.parquet")
    assert quick_count(str(tmp_path / "a.parquet")) == 2


def test_samples_are_counted() -> None:
    path = Path(row_counts.__file__).parent / "sample" / "faq.en.jsonl"
    assert rows_in("sample:faq.en") == len(list(read_rows(path)))


def test_what_cannot_be_counted_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.txt.gz").write_text("no gzip")
    (tmp_path / "a.unknown").write_text("one\n")
    (tmp_path / "a.txt").write_text("one\n")
    for name in (
        "-",
        str(tmp_path / "nothing.txt"),
        str(tmp_path / "broken.txt.gz"),
        str(tmp_path / "a.unknown"),
    ):
        assert quick_count(name) is None
    assert quick_count(str(tmp_path / "a.unknown"), FileConfig(format="text")) == 1
    (tmp_path / "a.csv").write_text("text\none\n")
    assert quick_count(str(tmp_path / "a.csv")) == 1
    monkeypatch.setattr(row_counts, "MAX_BYTES", 3)
    assert quick_count(str(tmp_path / "a.csv")) is None

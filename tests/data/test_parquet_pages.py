"""The sizes of pages that their headers tell, compared with what pyarrow wrote; headers that are damaged."""

from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tercet.data.parquet_pages import PageHeaderError, page_sizes
from tercet.data.parquet_rows import ParquetColumn, parquet_rows
from tercet.errors import DataError

pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")

LONGEST_HEADER = 200
"""Bytes that a header of these tests has at most."""


def written(tmp_path: Path, columns: dict[str, Any], **options: Any) -> str:
    file = tmp_path / "pages.parquet"
    pq.write_table(pa.table(columns), file, **options)
    return str(file)


def sizes_of(file: str) -> list[int]:
    """The sizes of the pages of the first column chunk."""
    with Path(file).open("rb") as opened:
        return list(page_sizes(opened, pq.ParquetFile(file).metadata.row_group(0).column(0)))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_size_of_a_page_is_that_of_its_values(version: str, tmp_path: Path) -> None:
    texts = ["a" * 10, "b" * 1000, "한"]
    file = written(tmp_path, {"text": texts}, use_dictionary=False, data_page_version=version)
    (size,) = sizes_of(file)
    values = sum(4 + len(text.encode()) for text in texts)  # each after its length, in 4 bytes
    assert values <= size <= values + 10  # and levels, which say that none is missing


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("extras", [{}, {"write_page_checksum": True, "write_page_index": True}])
def test_pages_and_their_headers_add_up_to_the_column_chunk(
    version: str, compression: str, dictionary: bool, extras: dict[str, bool], tmp_path: Path
) -> None:
    file = written(
        tmp_path,
        {"text": [[f"{row} {'x' * (row % 50)}"] * (row % 3) for row in range(5000)]},
        data_page_version=version,
        compression=compression,
        use_dictionary=dictionary,
        data_page_size=1000,
        **extras,
    )
    sizes, chunk = sizes_of(file), pq.ParquetFile(file).metadata.row_group(0).column(0)
    assert len(sizes) > 4
    assert sum(sizes) < chunk.total_uncompressed_size < sum(sizes) + LONGEST_HEADER * len(sizes)


@pytest.mark.parametrize(
    "values", [[1, None, 3], [1.5, 2.0], [True, False], [b"ab", None], [None, None], [{"a": 1, "b": [2]}]]
)
def test_headers_of_all_kinds_of_columns_are_read(values: list[Any], tmp_path: Path) -> None:
    file = written(tmp_path, {"text": values})
    assert [row["text"] is None for _, row in parquet_rows(file)] == [value is None for value in values]
    assert all(size >= 0 for size in sizes_of(file))


def test_a_page_beyond_the_limit_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["small"] * 2000 + ["x" * 60_000] + ["small"] * 2000
    file = written(tmp_path, {"text": texts, "other": texts}, use_dictionary=False, compression="zstd")
    monkeypatch.setenv("TERCET_MAX_PAGE_BYTES", "50000")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("a page was decoded"))
    with pytest.raises(DataError, match=r"a page of column 'text' is 96,\d+, and at most 50,000 are allowed"):
        next(parquet_rows(file))[1]["text"]


def test_a_long_value_of_a_dictionary_is_not_repeated_for_many_rows_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 5000]))
    file = written(tmp_path, {"text": repeated}, store_schema=False)
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "20000")
    decoded = list[int]()
    reading = ParquetColumn._small_parts

    def noted(self: ParquetColumn, arrow: Any, column: Any, number: int) -> Any:
        decoded.append(column.nbytes)
        return reading(self, arrow, column, number)

    monkeypatch.setattr(ParquetColumn, "_small_parts", noted)
    assert {row["text"] for _, row in parquet_rows(file)} == {"x" * 5000}
    assert max(decoded) <= 20_000


STRUCT, LIST_OF_DOUBLES = b"\x1c", b"\x19\xf7"


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\x15",
        b"\x15\x00\x00",
        b"\x15\x00\x15\x01\x15\x02\x00",
        b"\x15" + b"\xff" * 20,
        b"\x1f\x00",
        STRUCT * 5000,
        LIST_OF_DOUBLES + b"\xff" * 8 + b"\x01",
    ],
    ids=["empty", "cut", "without sizes", "negative", "long number", "type", "deep", "long list"],
)
def test_a_damaged_header_is_an_error(header: bytes) -> None:
    chunk = SimpleNamespace(
        data_page_offset=0, has_dictionary_page=False, total_compressed_size=100, num_values=1
    )
    with pytest.raises(PageHeaderError):
        list(page_sizes(BytesIO(header), chunk))


def test_a_file_with_a_damaged_header_is_named(tmp_path: Path) -> None:
    file = Path(written(tmp_path, {"text": ["a", "b"]}))
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\x1f" * 8 + content[12:])
    with pytest.raises(DataError, match=r"pages\.parquet is not a complete Parquet file: .*: write it again"):
        next(parquet_rows(str(file)))[1]["text"]

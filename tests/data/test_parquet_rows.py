"""Parquet: types that JSON does not have, repeated names, and the numbers of rows."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tercet.data.columns import contexts, pairs, texts
from tercet.data.parquet_rows import BATCH_ROWS
from tercet.data.parquet_values import json_values
from tercet.data.readers import read_examples
from tercet.data.rows import read_rows
from tercet.errors import DataError
from tercet.settings.data import DataConfig
from tercet.settings.limits import current_limits

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path: Path, **columns: Any) -> Path:
    """A Parquet file of these arrays."""
    parquet.write_table(arrow.table(columns), path)
    return path


TYPED: dict[str, tuple[Any, Any]] = {
    "date": (arrow.array([10_000_000], arrow.int32()).cast(arrow.date32()), "29349-01-26"),
    "time": (arrow.array([1], arrow.time64("ns")), "00:00:00.000000001"),
    "timestamp": (arrow.array([1], arrow.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
    "zone": (arrow.array([0], arrow.timestamp("us", "Asia/Seoul")), "1970-01-01 09:00:00.000000+0900"),
    "unknown zone": (arrow.array([0], arrow.timestamp("us", "Foo/Bar")), "1970-01-01 00:00:00.000000Z"),
    "duration": (arrow.array([1_500_000_001], arrow.duration("ns")), 1.5),
    "decimal": (arrow.array([Decimal("1.50")], arrow.decimal128(10, 2)), 1.5),
    "whole decimal": (
        arrow.array([Decimal(12345678901234567890)], arrow.decimal128(38, 0)),
        12345678901234567890,
    ),
    "text as bytes": (arrow.array(["é".encode()], arrow.binary()), "é"),
    "bytes": (arrow.array([b"\xff"], arrow.binary()), b"\xff"),
    "broken string": (arrow.array([b"\xff"]).cast(arrow.string(), safe=False), b"\xff"),
    "list": (arrow.array([[0]], arrow.list_(arrow.timestamp("s"))), ["1970-01-01 00:00:00.000"]),
    "struct": (arrow.array([{"a": 1000}], arrow.struct([("a", arrow.duration("ms"))])), {"a": 1.0}),
    "map": (arrow.array([[("k", 0)]], arrow.map_(arrow.string(), arrow.date32())), [["k", "1970-01-01"]]),
    "null": (arrow.array([None], arrow.date32()), None),
}


@pytest.mark.parametrize("kind", TYPED)
def test_a_type_that_json_does_not_have_is_read_and_an_unused_column_never_fails(
    kind: str, tmp_path: Path
) -> None:
    column, expected = TYPED[kind]
    path = write(tmp_path / "a.parquet", text=arrow.array(["one"]), other=column)
    (row,) = read_rows(path)
    assert row.columns["other"] == expected
    assert type(row.columns["other"]) is type(expected)
    assert list(texts(read_rows(path), "text")) == ["one"]


@pytest.mark.parametrize(("kind", "got"), [("bytes", "bytes"), ("duration", "float"), ("decimal", "float")])
def test_a_used_column_that_is_not_text_is_an_error(kind: str, got: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", text=TYPED[kind][0])
    with pytest.raises(DataError, match=rf"a\.parquet, row 0: column 'text' must be a string, got {got}"):
        list(texts(read_rows(path)))


def test_a_used_date_is_a_text(tmp_path: Path) -> None:
    assert list(texts(read_rows(write(tmp_path / "a.parquet", text=TYPED["date"][0])))) == ["29349-01-26"]


def test_repeated_names_are_refused(tmp_path: Path) -> None:
    ones = arrow.array([1])
    parquet.write_table(arrow.Table.from_arrays([ones] * 3, names=["a", "b", "a"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: several columns have the same name: 'a': rename"):
        list(read_rows(tmp_path / "a.parquet"))
    write(tmp_path / "b.parquet", s=arrow.StructArray.from_arrays([ones, ones], names=["x", "x"]))
    with pytest.raises(DataError, match="several columns have the same name: 'x'"):
        list(read_rows(tmp_path / "b.parquet"))


@pytest.mark.parametrize("wrong", [0, BATCH_ROWS - 1, BATCH_ROWS, 999, 1000, 1001, 2 * BATCH_ROWS + 1000])
def test_an_error_names_the_row_beyond_batches_and_row_groups(wrong: int, tmp_path: Path) -> None:
    values = [f"text {number}" for number in range(2000)]
    values[wrong] = ""
    parquet.write_table(arrow.table({"text": values}), tmp_path / "a.parquet", row_group_size=1000)
    with pytest.raises(DataError, match=rf"a\.parquet, row {wrong}: column 'text' is empty"):
        list(texts(read_rows(tmp_path / "a.parquet")))
    rows = list(read_rows(tmp_path / "a.parquet"))
    assert all(row.location.endswith(f", row {number}") for number, row in enumerate(rows))
    assert all(row.columns["text"] in ("", f"text {number}") for number, row in enumerate(rows))


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.parquet", text=arrow.array([f"text {number}" for number in range(100)]))
    assert len(list(read_rows(path))) == 100
    monkeypatch.setenv("TERCET_MAX_UNPACKED_BYTES", "100")
    with pytest.raises(DataError, match="more than 100 bytes after decompression"):
        list(read_rows(path))


@pytest.mark.parametrize("keep", [0, 3, 300])
def test_an_incomplete_file_is_named(keep: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", text=arrow.array(["one"] * 100))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"a\.parquet is not a complete Parquet file: .*write it again"):
        list(read_rows(path))


def test_a_damaged_column_is_an_error_only_where_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = arrow.table(
        {"context": ["one"] * 9, "candidate": ["two"] * 9, "score": [1] * 9, "bad": ["x"] * 9}
    )
    parquet.write_table(table, path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    start = parquet.ParquetFile(path).metadata.row_group(0).column(3).data_page_offset
    content[start : start + 20] = b"\xff" * 20
    path.write_bytes(content)
    assert list(texts(read_rows(path), "context")) == ["one"] * 9
    assert list(contexts(read_rows(path))) == ["one"] * 9
    assert list(pairs(read_rows(path), context=None, candidate=None)) == [("one", "two")] * 9
    assert len(read_examples(DataConfig(files=(str(path),), reader="pairs"))) == 9
    with pytest.raises(DataError, match=r"^\S+a\.parquet is not a complete Parquet file: .*write it again$"):
        list(texts(read_rows(path), "bad"))


def test_rows_can_be_read_again_and_in_any_order(tmp_path: Path) -> None:
    numbers = list(range(3 * BATCH_ROWS + 5))
    rows = list(read_rows(write(tmp_path / "a.parquet", a=numbers, b=[str(number) for number in numbers])))
    assert [row.columns["a"] for row in rows] == numbers
    assert [rows[number].columns["b"] for number in (700, 3, 600, 0)] == ["700", "3", "600", "0"]
    assert [dict(row.columns) for row in rows[-2:]] == [
        {"a": number, "b": str(number)} for number in numbers[-2:]
    ]


def test_columns_whose_names_begin_alike_are_not_mixed_up(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = arrow.table({"a": [{"b": 1, "c": 2}], "a.b": [3], "a.c": ["four"]})
    parquet.write_table(table, path)
    (row,) = read_rows(path)
    assert dict(row.columns) == {"a": {"b": 1, "c": 2}, "a.b": 3, "a.c": "four"}


LONG = 4_000
TOO_LARGE: dict[str, Any] = {
    "string": arrow.array(["x" * LONG]),
    "dictionary": arrow.array(["x" * LONG]).dictionary_encode(),
    "bytes": arrow.array([b"x" * LONG]),
    "list": arrow.array([["xy"] * 500]),
    "nothings": arrow.array([[None] * 500]),
    "flags": arrow.array([[True] * 500]),
    "struct": arrow.array([{"a": [1] * 500}]),
    "map": arrow.array([[(str(key), key) for key in range(500)]], arrow.map_(arrow.string(), arrow.int64())),
    "vector": arrow.array([[1.0] * 500], arrow.list_(arrow.float32(), 500)),
}


@pytest.mark.parametrize("kind", TOO_LARGE)
@pytest.mark.parametrize("others", [0, 100], ids=["alone", "among small ones"])
def test_a_value_beyond_the_limit_is_refused_before_python_has_it(
    kind: str, others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "2000")
    monkeypatch.setattr("tercet.data.parquet_rows.json_values", _small_values)
    column = TOO_LARGE[kind]
    values = arrow.chunked_array([arrow.nulls(others, column.type), column])
    path = write(tmp_path / "a.parquet", text=["one"] * (others + 1), other=values)
    assert list(texts(read_rows(path), "text")) == ["one"] * (others + 1)
    location = rf"a\.parquet{f', row {others}' if others else ''}"
    message = (
        rf"{location}: the number of bytes of a value in column 'other' is [\d,]+, and at most 2,000 are"
    )
    with pytest.raises(DataError, match=f"{message} allowed: raise TERCET_MAX_LINE_BYTES"):
        [row.columns["other"] for row in read_rows(path)]
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "20000")
    assert len([row.columns["other"] for row in read_rows(path)]) == others + 1


def _small_values(pyarrow: Any, column: Any, location: str) -> list[Any]:
    """``json_values``, which must not be called for a value beyond the limit."""
    values = json_values(pyarrow, column, location)
    assert len(str(values)) < 2000 or current_limits().max_line_bytes > 2000
    return values


def test_values_that_are_large_only_together_are_all_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_MAX_LINE_BYTES", "2000")
    values = ["x" * 900, "y" * 900] * 50
    path = write(tmp_path / "a.parquet", plain=values, categories=arrow.array(values).dictionary_encode())
    rows = list(read_rows(path))
    assert [row.columns["plain"] for row in rows] == values
    assert [row.columns["categories"] for row in rows] == values

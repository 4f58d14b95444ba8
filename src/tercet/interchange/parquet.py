"""Parquet files of candidates with the columns id, text, metadata and vector; a row group is a batch."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tercet.data.parquet_vectors import parquet_vectors
from tercet.data.rows import Row, read_rows
from tercet.errors import DataError
from tercet.extras import require
from tercet.files.atomic import new_file
from tercet.files.parsing import parse_json
from tercet.files.structured import json_text
from tercet.index.item_forms import item_of, metadata_of
from tercet.index.items import Item
from tercet.interchange.batches import VectorBatch, VectorSource, regrouped
from tercet.interchange.origin import Origin, origin_from
from tercet.settings.files import FileConfig
from tercet.settings.interchange import VectorColumns

ORIGIN_KEY = b"tercet"
"""The key of the origin in the metadata of the file."""
PURPOSE = "Parquet"


def write_parquet(
    path: Path, batches: Iterable[VectorBatch], origin: Origin, *, overwrite: bool = False
) -> int:
    """Write candidates and their vectors, one row group at a time; returns how many."""
    parquet = require("pyarrow.parquet", extra="parquet", purpose=PURPOSE)
    count = 0
    with (
        new_file(path, overwrite=overwrite) as partial,
        parquet.ParquetWriter(partial, vector_schema(origin), use_dictionary=False) as writer,
    ):
        for batch in regrouped(batches):
            writer.write_table(vector_table(batch, origin))
            count += len(batch.items)
    return count


def vector_schema(origin: Origin) -> Any:
    """The columns of a file of vectors, with their origin."""
    arrow = require("pyarrow", extra="parquet", purpose=PURPOSE)
    text = [arrow.field(name, arrow.string(), nullable=False) for name in ("id", "text", "metadata")]
    vector = arrow.field("vector", arrow.list_(arrow.float32(), origin.width), nullable=False)
    return arrow.schema([*text, vector], metadata={ORIGIN_KEY: origin.as_text().encode()})


def vector_table(batch: VectorBatch, origin: Origin) -> Any:
    """Candidates and vectors as a table of Arrow; metadata is JSON, which keeps every type."""
    arrow = require("pyarrow", extra="parquet", purpose=PURPOSE)
    items, vectors = batch
    columns = [
        arrow.array([item.id for item in items], arrow.string()),
        arrow.array([item.text for item in items], arrow.string()),
        arrow.array([json_text(dict(item.metadata or {})) for item in items], arrow.string()),
        arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), origin.width),
    ]
    return arrow.table(columns, schema=vector_schema(origin))


def open_parquet(path: Path, columns: VectorColumns) -> VectorSource:
    """The vectors in a Parquet file, of tercet or of another program."""
    parquet = require("pyarrow.parquet", extra="parquet", purpose=PURPOSE)
    next(read_rows(path, FileConfig(format="parquet")), None)  # its errors name the file
    metadata = parquet.read_metadata(path)
    written = (metadata.metadata or {}).get(ORIGIN_KEY)
    origin = None if written is None else origin_from(written, f"the origin in {path}")

    def read() -> Iterator[VectorBatch]:
        rows = read_rows(path, FileConfig(format="parquet"))
        position = 0
        for vectors in parquet_vectors(str(path), columns.vector):
            items = [_item(next(rows), position + at, columns) for at in range(len(vectors))]
            position += len(items)
            yield VectorBatch(items, vectors)

    return VectorSource(path=path, count=metadata.num_rows, origin=origin, read=read)


def _item(row: Row, position: int, columns: VectorColumns) -> Item:
    """The candidate of a row; columns that are not named otherwise are metadata."""
    for name in (columns.id, columns.text):
        if name not in row.columns:
            raise DataError(
                f"{row.location}: column {name!r} is missing, only {', '.join(map(repr, row.columns))}: "
                "name it "
                "(--id-column, --column, --vector-column)"
            )
    own = (columns.id, columns.text, columns.vector)
    rest = {name: row.columns[name] for name in row.columns if name not in own}
    if isinstance(rest.get("metadata"), str):
        rest["metadata"] = _parsed(rest["metadata"], row.location)
    id_, text = row.columns[columns.id], row.columns[columns.text]
    if id_ is None or id_ == "":
        raise DataError(f"{row.location}: column {columns.id!r} is empty: every candidate needs an id")
    return item_of(
        {"id": id_, "text": text, "metadata": dict(metadata_of(rest, row.location) or {})}, position
    )


def _parsed(text: str, location: str) -> Mapping[str, Any]:
    try:
        content = parse_json(text)
    except ValueError as error:
        raise DataError(f"{location}: column 'metadata' is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise DataError(f"{location}: column 'metadata' must be a JSON object, got {text[:80]!r}")
    return content

"""Examples as records and back, and the columns that the kinds of work on examples share."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tercet.data.readers import iter_examples
from tercet.extras import require
from tercet.records import Example
from tercet.scale.records import Alike
from tercet.scale.work import Record
from tercet.settings.data import DataConfig


def example_records(config: DataConfig) -> Iterator[Record]:
    """``row``, ``context``, ``candidates`` and ``location`` of each example."""
    alike = Alike()
    for row, example in enumerate(iter_examples(config)):
        context = alike.checked(example.context, example.location)
        yield {
            "row": row,
            "context": context,
            "candidates": list(example.candidates),
            "location": example.location,
        }


def examples_of(records: Iterable[Record]) -> list[Example]:
    """The examples of a part."""
    return [
        Example(
            context=record["context"], candidates=tuple(record["candidates"]), location=record["location"]
        )
        for record in records
    ]


def example_table(records: Sequence[Record], columns: dict[str, tuple[Sequence[Any], Any]]) -> Any:
    """A table of Arrow with the row and the context of each example, and other columns with their types."""
    arrow = require("pyarrow", extra="parquet", purpose="writing shards")
    return arrow.table(
        {
            "row": arrow.array([record["row"] for record in records], arrow.int64()),
            "context": arrow.array([record["context"] for record in records]),
            **{name: arrow.array(values, type_) for name, (values, type_) in columns.items()},
        }
    )

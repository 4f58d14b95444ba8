"""The candidates and the origin of vectors, in files beside a file that has no room for them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from tercet.data.rows import read_rows
from tercet.errors import DataError
from tercet.files.atomic import new_file
from tercet.files.structured import json_text
from tercet.index.item_forms import item_of
from tercet.index.items import Item
from tercet.interchange.origin import Origin, origin_from
from tercet.settings.files import FileConfig


def items_path(path: Path) -> Path:
    """The JSONL file beside a file of vectors: ``faq.jsonl`` for ``faq.npy``."""
    return path.with_suffix(".jsonl")


def origin_path(path: Path) -> Path:
    """The JSON file beside a file of vectors that names their model."""
    return path.with_suffix(".origin.json")


def item_line(item: Item) -> str:
    """A candidate as a line of JSON."""
    return f"{json_text({'id': item.id, 'text': item.text, 'metadata': dict(item.metadata or {})})}\n"


def write_origin(path: Path, origin: Origin, *, overwrite: bool) -> None:
    """Write the origin of a file of vectors beside it."""
    with new_file(origin_path(path), overwrite=overwrite) as partial:
        partial.write_text(f"{origin.as_text()}\n", encoding="utf-8")


def read_origin(path: Path) -> Origin | None:
    """The origin beside a file of vectors; None if there is none."""
    beside = origin_path(path)
    return origin_from(beside.read_bytes(), str(beside)) if beside.is_file() else None


def items_of(path: Path, counts: Iterable[int]) -> Iterator[list[Item]]:
    """The candidates beside a file of vectors, as many at a time as ``counts`` says, and all of them."""
    beside = items_path(path)
    if not beside.is_file():
        raise DataError(
            f"{path} has vectors only: write their ids and texts to {beside}, a JSON object with id and "
            "text per "
            "line, in the same order"
        )
    rows, position = read_rows(beside, FileConfig(format="jsonl")), 0
    for count in counts:
        items = [_item(row.columns, position + at) for at, row in enumerate(islice(rows, count))]
        position += len(items)
        if len(items) < count:
            raise DataError(f"{beside} has {position:,} lines, fewer than the vectors in {path}")
        yield items
    if next(rows, None) is not None:
        raise DataError(f"{beside} has more lines than {path} has vectors ({position:,})")


def _item(columns: object, position: int) -> Item:
    item = item_of(columns, position)
    if not item.id:
        raise DataError(f"line {position} of the candidates has no id: every candidate needs one")
    return item

"""The candidates of a database as a JSONL file, and their vectors as an ``.npy`` file."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tercet.errors import InputError
from tercet.files.atomic import check_free, new_file
from tercet.files.structured import json_text
from tercet.files.vectors import writing_vectors
from tercet.index.export import as_dict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tercet.index.items import Item
    from tercet.records import Floats


def export_candidates(
    name: str,
    batches: "Iterable[tuple[list[Item], Floats | None]]",
    path: Path,
    *,
    vectors: Path | None = None,
    overwrite: bool = False,
) -> int:
    """Write candidates, one per line, and their vectors in the same order; returns how many were written.

    Args:
        name: what errors call the index.
    """
    if vectors is not None and vectors.resolve() == path.resolve():
        raise InputError(f"candidates and vectors need a file each, got {path} for both")
    for file in (path, vectors):
        if file is not None:
            check_free(file, overwrite=overwrite)
    count = 0
    with ExitStack() as stack:
        writer = (
            None if vectors is None else stack.enter_context(writing_vectors(vectors, overwrite=overwrite))
        )
        partial = stack.enter_context(new_file(path, overwrite=overwrite))
        lines = stack.enter_context(partial.open("w", encoding="utf-8"))
        for items, batch in batches:
            lines.writelines(f"{json_text(as_dict(item))}\n" for item in items)
            if writer is not None and batch is not None:
                writer.append(batch)
            count += len(items)
        if not count:
            raise InputError(f"{name} has no candidates to export")
    return count

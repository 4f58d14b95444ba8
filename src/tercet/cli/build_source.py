"""What an index is built from: the same command resumes an unfinished build, and another one is refused."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tercet.errors import OutputError
from tercet.files.structured import json_text

if TYPE_CHECKING:
    from tercet.index.protocol import CandidateStore


def build_source(file: str, **options: Any) -> str:
    """Identifies a build: its file and its options. Whether the rows are the same, their digest says."""
    path = Path(file)
    return json_text({"file": str(path.resolve()) if path.is_file() else file, **options})


def check_out(place: str, source: str) -> bool:
    """Whether a folder or an address is free. Raises unless an index there is the same build, unfinished."""
    from tercet.index.opening import has_index, is_address, open_store

    if not has_index(place):
        if not is_address(place) and Path(place).exists():
            raise OutputError(f"{place} exists and is not an index: choose another folder")
        return True
    store = open_store(place)
    try:
        _check_resumable(store, source)
    finally:
        store.close()
    return False


def _check_resumable(store: "CandidateStore", source: str) -> None:
    started = store.metadata("source")
    if started is None or store.is_finished:
        raise OutputError(f"{store.name} exists: choose another one, or add candidates with tercet index add")
    if started != source:
        raise OutputError(
            f"{store.name} is an unfinished build of {len(store):,} candidates, started with "
            f"{_differences(started, source)}: run that command again, or remove the index and start anew"
        )


def _differences(started: str, source: str) -> str:
    """The options of a build that differ from those given now."""
    before, now = (_options(text) for text in (started, source))
    different = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    shown = [
        f"{name} {json_text(before.get(name))} instead of {json_text(now.get(name))}" for name in different
    ]
    return ", ".join(shown) or "another source"


def _options(source: str) -> dict[str, Any]:
    """The options in the name of a source; none if it was named by other code."""
    try:
        options = json.loads(source)
    except ValueError:
        return {}
    return options if isinstance(options, dict) else {}

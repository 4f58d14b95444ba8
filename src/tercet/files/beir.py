"""The files of a retrieval set in the shape of BEIR: a folder with a corpus, queries and qrels."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tercet.errors import DataError

SUFFIXES = (".jsonl", ".ndjson", ".json", ".tsv", ".csv", ".parquet", ".txt")
"""Each also with ``.gz``."""
CORPUS, QUERIES, QRELS = "corpus", "queries", "qrels"
DEFAULT_SPLIT = "test"
NEEDED = (
    f"a retrieval set needs {CORPUS}.jsonl, {QUERIES}.jsonl, and {QRELS}.tsv or {QRELS}/{DEFAULT_SPLIT}.tsv "
    "(also .json, .csv, .tsv, .parquet, and .gz of these)"
)
MAX_LISTED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BeirFiles:
    """The three files of a retrieval set, and the splits of its judgements."""

    corpus: Path
    queries: Path
    qrels: Path
    split: str
    """The split of ``qrels``; empty if the judgements have no splits."""
    other_splits: tuple[str, ...]


def is_beir_folder(folder: Path) -> bool:
    """Whether the folder has at least one of corpus, queries and qrels."""
    return any(_named(folder, name) for name in (CORPUS, QUERIES)) or bool(_qrels(folder))


def find_beir_files(folder: Path, split: str = "") -> BeirFiles:
    """The files of the retrieval set in a folder.

    Args:
        split: the judgements to use, such as ``dev``. Default: ``test``, or the only ones.
    """
    splits = _qrels(folder)
    missing = [name for name in (CORPUS, QUERIES) if not _named(folder, name)]
    missing += [] if splits else [QRELS]
    if missing:
        raise DataError(f"{folder} has no {' and no '.join(missing)}: {NEEDED}; {contents(folder)}")
    chosen = _choose(folder, split, splits)
    return BeirFiles(
        corpus=_only(_named(folder, CORPUS)),
        queries=_only(_named(folder, QUERIES)),
        qrels=_only(splits[chosen]),
        split=chosen,
        other_splits=tuple(name for name in splits if name not in (chosen, "")),
    )


def contents(folder: Path) -> str:
    """What a folder contains, for error messages."""
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return f"the folder contains {', '.join(names[:MAX_LISTED])}{more}" if names else "the folder is empty"


def _choose(folder: Path, split: str, splits: dict[str, list[Path]]) -> str:
    """The name of the split to use; the judgements of a file ``qrels.tsv`` have the empty name."""
    named = [name for name in splits if name]
    if split and split not in named:
        known = (
            f"choose one of {', '.join(named)}" if named else "its judgements have no splits: remove --split"
        )
        raise DataError(f"{folder} has no split {split!r}: {known}")
    if split or "" in splits:
        return split
    if len(named) > 1 and DEFAULT_SPLIT not in named:
        raise DataError(
            f"{folder} has no split {DEFAULT_SPLIT!r}: choose one with --split: {', '.join(named)}"
        )
    return DEFAULT_SPLIT if DEFAULT_SPLIT in named else named[0]


def _qrels(folder: Path) -> dict[str, list[Path]]:
    """The files of each split: ``qrels/test.tsv``, ``qrels_test.tsv``, or ``qrels.tsv`` without a split."""
    found: dict[str, list[Path]] = {}
    for path in _data_files(folder):
        stem = _stem(path)
        if stem == QRELS:
            found.setdefault("", []).append(path)
        elif stem.startswith(tuple(QRELS + mark for mark in "._-")):
            found.setdefault(stem[len(QRELS) + 1 :], []).append(path)
    for path in _data_files(folder / QRELS):
        found.setdefault(_stem(path), []).append(path)
    return dict(sorted(found.items()))


def _named(folder: Path, name: str) -> list[Path]:
    return [path for path in _data_files(folder) if _stem(path) == name]


def _data_files(folder: Path) -> Iterable[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file() and _stem(path) != path.name)


def _stem(path: Path) -> str:
    """The file name without its suffix, if that is one of ``SUFFIXES``."""
    plain = path.name.removesuffix(".gz")
    suffix = next((suffix for suffix in SUFFIXES if plain.lower().endswith(suffix)), None)
    return path.name if suffix is None else plain[: -len(suffix)]


def _only(paths: list[Path]) -> Path:
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths)
        raise DataError(f"{paths[0].parent} has both {names}: remove all but one")
    return paths[0]

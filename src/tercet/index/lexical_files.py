"""The files of a lexical index, and their digests. tantivy never changes a file, except for two lists."""

import re
from collections.abc import Mapping
from pathlib import Path

from tercet.files.digest import file_digest

LISTS = ("meta.json", ".managed.json")
"""The files of tantivy that change; they list the others."""
CONTENT = re.compile(r"[0-9a-f]{32}(\.\d+)?\.\w+|\.?(meta|managed)\.json")
"""The names of the files that determine what a search finds."""
LEXICAL_FILE = re.compile(rf"{CONTENT.pattern}|\.tantivy-\w+\.lock|\.tmp\w+")
"""The names of all files of tantivy."""


def lexical_digests(folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """The digests of the present files by name. ``known`` ones are not read again, except for the lists."""
    names = sorted(file.name for file in folder.iterdir() if CONTENT.fullmatch(file.name))
    old = {name: digest for name, digest in known.items() if name not in LISTS}
    return {name: old.get(name) or file_digest(folder / name) for name in names}


def modified_files(folder: Path, digests: Mapping[str, str], *, is_changing: bool) -> list[str]:
    """The names of the files that are missing, or differ from their digests.

    Args:
        is_changing: whether tantivy may have committed since the digests were taken: then files may be
            missing, and the lists may have changed.
    """
    names = [name for name in digests if not (is_changing and name in LISTS)]
    found = {name: _digest(folder / name) for name in names}
    return [name for name in names if found[name] != digests[name] and not (is_changing and not found[name])]


def _digest(file: Path) -> str:
    """The digest of a file; empty if it is missing."""
    try:
        return file_digest(file)
    except FileNotFoundError:
        return ""

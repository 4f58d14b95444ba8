"""SHA-256 digests of files, folders and rows."""

import json
from collections.abc import Iterable
from hashlib import file_digest as hash_stream
from hashlib import sha256
from pathlib import Path
from typing import Any

SHORT = 16
"""Hexadecimal digits of a digest that identifies something among few."""


def file_digest(file: Path) -> str:
    """The full digest of a file's bytes."""
    with file.open("rb") as opened:
        return hash_stream(opened, "sha256").hexdigest()


def path_digest(path: Path) -> str:
    """A short digest of a file, or of all files of a folder and their names."""
    if not path.is_dir():
        return file_digest(path)[:SHORT]
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return text_digest("\n".join(f"{file.relative_to(path)} {path_digest(file)}" for file in files))


def text_digest(text: str) -> str:
    """A short digest of a string."""
    return sha256(text.encode()).hexdigest()[:SHORT]


def rows_digest(rows: Iterable[Any]) -> str:
    """A short digest of values that JSON can represent."""
    digest = sha256()
    for row in rows:
        digest.update(json.dumps(row, ensure_ascii=False).encode())
    return digest.hexdigest()[:SHORT]

"""Deletion of what we wrote, by the names of our own files, and of nothing else. Links are never followed."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from tercet.errors import BrokenIndexError, OutputError

IsOurs: TypeAlias = Callable[[str], bool]
"""Whether we write a file of this name, which is relative to the folder and has slashes."""


def matches(*patterns: str) -> IsOurs:
    """Whether a name matches a pattern such as ``model/*.json``; ``*`` also matches slashes."""
    return lambda name: any(fnmatchcase(name, pattern) for pattern in patterns)


def remove_folder(folder: Path, ours: IsOurs) -> None:
    """Delete a folder that contains only what we wrote; raise and delete nothing otherwise.

    Links are never followed. A folder that does not exist is no error.
    """
    if not os.path.lexists(folder):
        return
    stray = next(foreign_files(folder, ours), None)
    if stray is not None:
        raise OutputError(
            f"{stray} was not written by tercet: move it out of {folder}, or remove it yourself"
        )
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise OutputError(f"cannot remove {folder}: {error.strerror or error}") from None


def foreign_files(folder: Path, ours: IsOurs) -> Iterator[Path]:
    """The links in a folder, and the files and empty folders that we do not write."""
    if folder.is_symlink() or not folder.is_dir():
        yield folder
        return
    for parent, folders, files in os.walk(folder):  # lists links to folders, and does not enter them
        here = Path(parent)
        links = [name for name in folders if (here / name).is_symlink()]
        empty = [name for name in folders if name not in links and not any((here / name).iterdir())]
        for name in (*links, *empty, *files):
            path = here / name
            if path.is_symlink() or not ours(path.relative_to(folder).as_posix()):
                yield path


def remove_own(folder: Path, own: re.Pattern[str]) -> None:
    """Delete the files of a folder whose whole names match ``own``, then the folder if nothing is left in it.

    A folder that is a link, and links, folders and other files in it, stay as they are.
    """
    if folder.is_symlink() or not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    for file in files:
        if own.fullmatch(file.name):
            Path(file.path).unlink(missing_ok=True)
    with suppress(OSError):  # it holds files of somebody else
        folder.rmdir()


def refuse_links(folder: Path) -> None:
    """Raise if a folder contains a symbolic link, through which writing would change files elsewhere."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink():
                raise BrokenIndexError(
                    f"{path} is a symbolic link, but an index contains none: replace it by what it leads to, "
                    'for example with "cp -rL"'
                )

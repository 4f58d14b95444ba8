"""Deletes only what tercet wrote, by the names of its own files, and never through a symbolic link."""

import os
import re
from contextlib import suppress
from pathlib import Path

from tercet.errors import BrokenIndexError


def delete_own(folder: Path, own: re.Pattern[str]) -> None:
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

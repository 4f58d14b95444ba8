"""A read-only folder as a folder of links that can be written."""

import os
from pathlib import Path

from tercet.files.temporary import OwnTemporaryFolder


class LinkedFolder:
    """A temporary folder of links to the files of another one.

    tantivy creates a lock file even to read an index. Here it can, though the index itself is read-only.
    """

    def __init__(self, target: Path) -> None:
        self._target = target.absolute()
        self._temporary = OwnTemporaryFolder()
        self.path = self._temporary.path
        self.refresh()

    def refresh(self) -> None:
        """Link the files that are new; the locks of tantivy are left out."""
        for file in self._target.iterdir():
            link = self.path / file.name
            if file.suffix != ".lock" and not link.is_symlink():
                link.symlink_to(file)


def is_read_only(folder: Path) -> bool:
    """Whether this process may read a folder, but not write to it."""
    return folder.is_dir() and not os.access(folder, os.W_OK)

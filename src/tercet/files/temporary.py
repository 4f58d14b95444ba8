"""Temporary folders that only the process that created them deletes."""

import os
import shutil
import weakref
from pathlib import Path
from tempfile import mkdtemp


class OwnTemporaryFolder:
    """A folder that is deleted with this object, but not by the copy of it in a forked process.

    ``tempfile.TemporaryDirectory`` would be deleted by the first forked process that ends.
    """

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="tercet-"))
        self.cleanup = weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)

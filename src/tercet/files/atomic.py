"""Atomic writes: a file or folder appears under its final name complete, or not at all."""

import errno
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from uuid import uuid4

from tercet.errors import OutputError, TercetError

PARTIAL_NAME = r"\.[0-9a-f]{12}\.partial"
"""Pattern of the names of files and folders that are still being written, or were when their process was
killed."""
PARTIAL = re.compile(PARTIAL_NAME)
ABANDONED_AFTER = 24 * 3600
"""Seconds since the last change after which nobody is writing a partial file any more."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL_MESSAGE = re.compile(
    r"no space left|disk is full|quota exceeded|file too large|\d+ requested and \d+ written", re.IGNORECASE
)
"""What SQLite, numpy and libraries written in Rust say when a disk is full, in several types of errors."""


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary path to write to. It is renamed to ``path`` on success and removed on failure."""
    check_free(path, overwrite=overwrite)
    path = path.resolve()  # writes to the target of a link and keeps the link
    sweep_partials(path.parent)
    partial = _partial(path)
    try:
        with writing(path):
            partial.touch()
        with full_disk_named(path):
            yield partial
        with writing(path):
            _sync(partial)
            if overwrite:
                partial.replace(path)
            else:
                _publish(partial, path)
            sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill. It is renamed to ``path`` on success and removed on failure."""
    check_free(path)
    sweep_partials(path.parent)
    partial = _partial(path)
    with writing(path):
        partial.mkdir()
    try:
        with full_disk_named(path):
            yield partial
        with writing(path):
            _share(partial)
            sync_tree(partial)
            check_free(path)
            partial.rename(path)
            sync_folder(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def sync_tree(folder: Path) -> None:
    """Make a folder survive a power failure: its files, then the names in it, innermost folders first."""
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            file = Path(parent, name)
            if file.is_file():
                _sync(file)
        sync_folder(Path(parent))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure, on systems that can."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(opened)
    except OSError:
        pass
    finally:
        os.close(opened)


def sweep_partials(folder: Path) -> None:
    """Delete what killed processes left half written in ``folder``, a day after its last change."""
    before = time.time() - ABANDONED_AFTER
    found: list[Path] = []
    with suppress(OSError):  # a folder may be writable but not readable
        found = [path for path in folder.iterdir() if PARTIAL.fullmatch(path.name)]
    for path in found:
        with suppress(OSError):  # another process sweeps too, or the file belongs to another user
            _delete_if_older(path, before)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn system errors about ``path``, such as a full disk, into an ``OutputError``."""
    try:
        with full_disk_named(path):
            yield
    except OSError as error:
        raise OutputError(f"cannot write to {path.parent}: {error.strerror or error}") from None


@contextmanager
def full_disk_named(path: Path) -> Iterator[None]:
    """Turn errors of any type about a full disk into an ``OutputError`` about ``path``."""
    try:
        yield
    except Exception as error:
        if not is_full_disk(error):
            raise
        raise OutputError(
            f"cannot write {path}: no space left on the device: free some, or choose another folder"
        ) from None


def is_full_disk(error: BaseException) -> bool:
    """Whether an error means that the disk is full, or the largest size of a file reached."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL
    if isinstance(error, TercetError) and not isinstance(error, OutputError):
        return False  # its message may quote a text of the user's
    return bool(FULL_MESSAGE.search(str(error)))


def check_parent(path: Path) -> None:
    """Raise if the parent folder of ``path`` does not exist."""
    if not path.parent.is_dir():
        raise OutputError(f"{path.parent} is not a folder: create it first, or choose another path")


def check_free(path: Path, *, overwrite: bool = False) -> None:
    """Raise early, before hours of work, if ``path`` cannot be written."""
    check_parent(path)
    if path.is_dir():
        raise OutputError(f"the folder {path} exists: choose another path or remove it first")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a device or a pipe: choose a path for a regular file")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"no permission to write to {path.parent}: choose another folder")
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} exists: choose another path, or overwrite it (overwrite=True, --overwrite)"
        )


def _partial(path: Path) -> Path:
    return path.with_name(f".{uuid4().hex[:12]}.partial")


def _delete_if_older(path: Path, before: float) -> None:
    """Delete a regular file or a folder, never a link, unless something in it changed after ``before``."""
    found = path.lstat()
    if S_ISREG(found.st_mode) and found.st_mtime < before:
        path.unlink()
    elif S_ISDIR(found.st_mode):
        inside = (each.lstat().st_mtime for each in path.rglob("*"))
        if max([found.st_mtime, *inside]) < before:
            shutil.rmtree(path)


def _share(folder: Path) -> None:
    """Give the files of a folder its own permissions: safetensors files are readable by the owner only."""
    permissions = folder.stat().st_mode & 0o666
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            file.chmod(permissions)


def _publish(partial: Path, path: Path) -> None:
    try:
        path.hardlink_to(partial)  # unlike a rename, this never replaces a file that appeared meanwhile
    except FileExistsError:
        raise OutputError(f"{path} was created by another process: nothing was overwritten") from None
    except OSError:  # the file system has no hard links
        check_free(path)
        partial.rename(path)


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())

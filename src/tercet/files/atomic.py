"""Atomic writes: a file or folder appears under its final name complete, or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from tercet.errors import OutputError

PARTIAL = ".partial"
"""Suffix of files that are still being written."""
PARTIAL_NAME = r"\.[0-9a-f]{12}\.partial"
"""Pattern of the names of such files and folders."""


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A temporary path to write to. It is renamed to ``path`` on success and removed on failure."""
    check_free(path, overwrite=overwrite)
    path = path.resolve()  # writes to the target of a link and keeps the link
    partial = _partial(path)
    try:
        with writing(path):
            partial.touch()
        yield partial
        _sync(partial)
        if overwrite:
            partial.replace(path)
        else:
            _publish(partial, path)
        _sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to fill. It is renamed to ``path`` on success and removed on failure."""
    check_free(path)
    partial = _partial(path)
    with writing(path):
        partial.mkdir()
    try:
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                file.chmod(partial.stat().st_mode & 0o666)  # safetensors files are readable by the owner only
                _sync(file)
        check_free(path)
        _sync_folder(partial)
        partial.rename(path)
        _sync_folder(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn system errors about ``path``, such as a full disk, into an ``OutputError``."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write to {path.parent}: {error.strerror or error}") from None


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
    return path.with_name(f".{uuid4().hex[:12]}{PARTIAL}")


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


def _sync_folder(folder: Path) -> None:
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

"""Files and folders that appear whole under their name, or not at all."""

import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from tercet.errors import InputError, ModelError, OutputError

PARTIAL = ".partial"
"""How the names of files end that are being written."""


@contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A path to write to; it takes its real name when the block ends well and vanishes when it does not."""
    check_free(path, overwrite=overwrite)
    path = path.resolve()  # what a link points to is written, the link stays
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
    """A folder to fill; it takes its real name when the block ends well and vanishes when it does not."""
    check_free(path)
    partial = _partial(path)
    with writing(path):
        partial.mkdir()
    try:
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                file.chmod(partial.stat().st_mode & 0o666)  # safetensors are made for their owner alone
                _sync(file)
        check_free(path)
        _sync_folder(partial)
        partial.rename(path)
        _sync_folder(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read_json(file: Path) -> dict[str, Any]:
    """The object in a model folder's JSON file."""
    return cast("dict[str, Any]", _read_json(file, dict))


def read_json_list(file: Path) -> list[dict[str, Any]]:
    """The objects listed in a model folder's JSON file."""
    return cast("list[dict[str, Any]]", _read_json(file, list))


def read_json_if_there(file: Path) -> dict[str, Any]:
    """As ``read_json``, and nothing where there is no such file."""
    return read_json(file) if file.is_file() else {}


def read_toml(recipe: Path) -> dict[str, Any]:
    """The tables of a recipe."""
    try:
        return tomllib.loads(recipe.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"there is no recipe {recipe}") from None
    except OSError as error:
        raise InputError(f"{recipe} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{recipe} is no TOML file: {error}") from None


def write_json(file: Path, content: object) -> None:
    """Write ``content`` so that people can read it too; the file appears whole."""
    with new_file(file, overwrite=True) as partial, writing(file):
        partial.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_json(file: Path, kind: type) -> object:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{file} is missing: the folder is no model, or was only half written") from None
    except ValueError as error:
        raise ModelError(f"{file} is not JSON ({error}): the folder is broken, copy it again") from None
    if not isinstance(content, kind):
        raise ModelError(f"{file} must hold a JSON {kind.__name__}, got {type(content).__name__}")
    return content


def _partial(path: Path) -> Path:
    return path.with_name(f".{uuid4().hex[:12]}{PARTIAL}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one line that there is no room or no permission for ``path``."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path.parent} cannot be written to: {error.strerror or error}") from None


def check_parent(path: Path) -> None:
    """Raise if there is no folder that ``path`` could lie in."""
    if not path.parent.is_dir():
        raise OutputError(f"{path.parent} is not a folder: make it first, or choose another path")


def check_free(path: Path, *, overwrite: bool = False) -> None:
    """Raise if ``path`` cannot be written, so that nobody works for hours in vain."""
    check_parent(path)
    if path.is_dir():
        raise OutputError(f"{path} is a folder that exists: choose another path or remove it first")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a device or a pipe: choose a path for a plain file")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path.parent} may not be written to by this user")
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} exists: choose another path, or overwrite it (overwrite=True, --overwrite)"
        )


def _publish(partial: Path, path: Path) -> None:
    try:
        path.hardlink_to(partial)  # unlike a rename, never replaces what another process made meanwhile
    except FileExistsError:
        raise OutputError(f"{path} was made by another process meanwhile: nothing was overwritten") from None
    except OSError:  # a file system without hard links
        check_free(path)
        partial.rename(path)


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    """See to it that the names in a folder survive a power cut, where a system can promise that."""
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

"""Files that are made once: each is kept while what it was made from stays the same.

Beside ``NAME`` lies ``NAME.from.json``, which says from what it was made: settings, and the hashes of files.
A killed run finds its files again; a changed setting makes anew only what comes after it. Several runs may
work in one folder: what one of them makes, the others wait for.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tercet.errors import OutputError
from tercet.files import check_parent, new_file, write_json, writing

Make = Callable[[Path], None]

MARK = "augment.json"
"""Tells a folder of ours from any other, in which nothing may be replaced."""
LOCKS = ".locks"


class Steps:
    """The files of one run, in one folder."""

    def __init__(self, folder: Path, *, say: Callable[[str], None] = lambda _: None) -> None:
        self.folder = folder
        self.made: list[str] = []
        """What was made in this run; the rest was there."""
        self._say = say
        check_parent(folder)
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder} is a file: a run is a folder")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
            raise OutputError(
                f"{folder} holds other things than a run of `tercet augment`: choose a new folder"
            )
        with writing(folder):
            folder.mkdir(exist_ok=True)
            write_json(folder / MARK, {"made by": "tercet augment"})
            (folder / LOCKS).mkdir(exist_ok=True)

    def file(self, name: str, origin: Mapping[str, Any], make: Make) -> Path:
        """A file that ``make`` writes, whole or not at all."""
        path = self.folder / name
        with self._alone(name):
            if self._is_from(path, origin):
                return path
            self._begin(path)
            with new_file(path, overwrite=True) as partial:
                make(partial)
            return self._end(path, origin)

    def growing_file(self, name: str, origin: Mapping[str, Any], make: Make) -> Path:
        """A file that ``make`` adds to, from where a killed run left it."""
        path = self.folder / name
        with self._alone(name):
            if self._is_from(path, origin):
                return path
            growing = path.with_name(f"{name}.growing")
            if not self._is_from(growing, origin):
                growing.unlink(missing_ok=True)
                write_json(_note(growing), plain(origin))
                growing.touch()
            self._begin(path)
            make(growing)
            self._end(path, origin)  # before it has its name: a kill here costs nothing
            growing.replace(path)
            _note(growing).unlink(missing_ok=True)
            return path

    def run(self, name: str, origin: Mapping[str, Any], make: Callable[[Path, bool], None]) -> Path:
        """A training's folder, which ``make`` begins, or, told so, goes on with."""
        path = self.folder / name
        note = _note(path)
        with self._alone(name):
            begun = path.is_dir() and self._is_from(path, origin)
            if not begun:
                note.unlink(missing_ok=True)  # first: half a folder must not pass for a whole one
                if path.exists():
                    shutil.rmtree(path)
                write_json(note, plain(origin))
            if not (path / "model").is_dir():
                self._say(f"{name}: {'going on' if begun else 'training'}")
                self.made.append(name)
                make(path, begun)
        return path

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Nobody else makes this meanwhile; what they are making is waited for."""
        lock = FileLock(self.folder / LOCKS / name)
        with writing(self.folder / LOCKS):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                self._say(f"{name}: another run is making it")
                lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _is_from(self, path: Path, origin: Mapping[str, Any]) -> bool:
        note = _note(path)
        if not path.exists() or not note.is_file():
            return False
        try:
            kept: object = json.loads(note.read_text(encoding="utf-8"))
        except ValueError:  # half written, or by somebody else
            return False
        return kept == plain(origin)

    def _begin(self, path: Path) -> None:
        self._say(f"{path.name}: making it")
        self.made.append(path.name)
        _note(path).unlink(missing_ok=True)

    def _end(self, path: Path, origin: Mapping[str, Any]) -> Path:
        write_json(_note(path), plain(origin))
        return path


def hash_of(path: Path) -> str:
    """What is in a file, or in all files of a folder."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        listed = [f"{file.relative_to(path)} {hash_of(file)}" for file in files]
        return sha256("\n".join(listed).encode()).hexdigest()[:16]
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]


def whole_lines(file: Path) -> int:
    """How many lines a growing file has; half a line at its end, which a kill left, is cut away."""
    count = end = 0
    with file.open("rb+") as opened:
        for line in opened:
            if not line.endswith(b"\n"):
                break
            count += 1
            end += len(line)
        opened.truncate(end)
    return count


def plain(origin: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON reads it back: tuples become lists."""
    found: dict[str, Any] = json.loads(json.dumps(origin, sort_keys=True))
    return found


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.from.json")

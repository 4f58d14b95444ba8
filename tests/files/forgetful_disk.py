"""A file system that forgets whatever was not synced, and records the calls that matter for that."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class ForgetfulDisk:
    """After a power failure, a file has its bytes at its last fsync, and a folder its names.

    Names may survive without an fsync too, as file systems write them when they like. So a final name is safe
    only if all below it was synced before it appeared.
    """

    def __init__(self, folder: Path, *, hard_links: bool = True) -> None:
        self.calls: list[str] = []
        """``fsync NAME``, ``link NAME``, ``rename NAME`` and ``replace NAME``; partial names are one dot."""
        self.after_call: Callable[[], None] = lambda: None
        self._folder = folder
        self._hard_links = hard_links
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, set[str]] = {}

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls of the block."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "link", "rename", "replace"):
                patch.setattr(os, name, self._recorded(name, getattr(os, name)))
            yield

    def has(self, path: Path) -> bool:
        """Whether a file or folder would be whole after a power failure, if its name is there."""
        number = path.stat().st_ino
        if path.is_file():
            return self._bytes.get(number) == path.read_bytes()
        return self._names.get(number) == set(os.listdir(path)) and all(map(self.has, path.iterdir()))

    def has_name(self, path: Path) -> bool:
        """Whether the name would certainly be there after a power failure."""
        return path.name in self._names.get(path.parent.stat().st_ino, set())

    def _recorded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def record(*arguments: Any, **options: Any) -> Any:
            target = (
                Path(arguments[1]) if name != "fsync" else Path(f"/proc/self/fd/{arguments[0]}").readlink()
            )
            shown = "/".join("." if part.endswith(".partial") else part for part in self._parts(target))
            self.calls.append(f"{name} {shown}")
            if name == "link" and not self._hard_links:
                raise PermissionError("this file system has no hard links")
            result = call(*arguments, **options)
            if name == "fsync":
                self._remember(target)
            self.after_call()
            return result

        return record

    def _parts(self, path: Path) -> tuple[str, ...]:
        return (self._folder.name, *path.relative_to(self._folder).parts)

    def _remember(self, path: Path) -> None:
        number = path.stat().st_ino
        if path.is_file():
            self._bytes[number] = path.read_bytes()
        else:
            self._names[number] = set(os.listdir(path))

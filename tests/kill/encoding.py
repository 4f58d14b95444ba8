"""Kills and full disks while texts are encoded to a file: it is the old one or the new one, and whole."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.conftest import WORDS
from tests.kill.children import Ended, Tell, run_child

import tercet
from tercet.files.vectors import open_vectors

TEXTS = 400


class Encoding:
    """A file of vectors that is overwritten again and again."""

    def __init__(self, folder: Path, scorer: tercet.BiEncoder) -> None:
        self._path = folder / "vectors.npy"
        self._scorer = scorer
        self._versions = [list(_texts(seed)) for seed in range(2)]
        start = time.monotonic()
        self._vectors = [scorer.encode(texts) for texts in self._versions]
        self._seconds = (time.monotonic() - start) / 2
        self._current: int | None = None

    def kill(self, chance: random.Random) -> Ended:
        """Kill a process that encodes, then check the file."""
        return self._once(seconds=chance.uniform(0, self._seconds))

    def fill_disk(self, chance: random.Random, max_bytes: int) -> Ended:
        """Run a process that encodes until the disk is full, then check the file."""
        return self._once(max_bytes=max_bytes)

    def _once(self, **options: Any) -> Ended:
        new = 1 - (self._current or 0)

        def encode(tell: Tell) -> None:
            self._scorer.encode(iter(self._versions[new]), self._path, overwrite=True)
            tell("done")

        ended = run_child(encode, **options)
        self._check(new, acknowledged="done" in ended.told)
        return ended

    def _check(self, new: int, *, acknowledged: bool) -> None:
        found = self._found()
        if found not in ((new,) if acknowledged else (new, self._current)):
            raise SystemExit(f"the file has version {found}, expected {new} or {self._current}")
        self._current = found

    def _found(self) -> int | None:
        """The version of the file; an incomplete one is an error."""
        if not self._path.exists():
            return None
        vectors = open_vectors(self._path)
        same = [position for position, each in enumerate(self._vectors) if np.array_equal(each, vectors)]
        if not same:
            raise SystemExit(f"{self._path} is neither version")
        return same[0]


def _texts(seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(TEXTS):
        yield " ".join(chance.choices(WORDS, k=chance.randint(1, 20)))

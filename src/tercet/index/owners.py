"""Which vectors belong to which candidates: one each, or one for each chunk of a candidate."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tercet.errors import InputError
from tercet.index.database import Database
from tercet.records import Ints, Part

CHUNKS = """
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    candidate INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    digest INTEGER NOT NULL
);
CREATE INDEX chunks_of_candidate ON chunks (candidate);
"""
"""``number`` identifies a vector, ``candidate`` is the number of its candidate, whose characters from
``start`` to ``stop`` it stands for."""

CandidateParts = Sequence[Sequence[Part]]
"""The parts of each candidate."""


class Owner(NamedTuple):
    """The number of the candidate that a vector belongs to, and its part; None is the whole text."""

    candidate: int
    part: Part | None


class VectorOwners(ABC):
    """The candidates of the vectors. Vectors and candidates are identified by numbers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @abstractmethod
    def numbers(self, candidates: Ints, parts: CandidateParts | None) -> Ints:
        """Numbers for the vectors of new candidates, in the order of their parts."""

    @abstractmethod
    def insert(self, vectors: Ints, candidates: Ints, parts: CandidateParts | None) -> None:
        """Store the owners of new vectors."""

    @abstractmethod
    def vectors_of(self, candidates: Ints) -> Ints:
        """The numbers of the vectors of some candidates."""

    @abstractmethod
    def delete(self, candidates: Ints) -> None:
        """Forget the vectors of some candidates."""

    @abstractmethod
    def delete_orphans(self) -> None:
        """Forget the vectors of candidates that are gone."""

    @abstractmethod
    def all_vectors(self) -> Ints:
        """The numbers of the vectors that all candidates should have."""

    @abstractmethod
    def owners(self, vectors: Ints) -> dict[int, Owner]:
        """The candidate and the part of each vector; unknown vectors are left out."""

    def texts(self, vectors: Ints) -> list[str]:
        """The text that each vector stands for."""
        owners = self.owners(vectors)
        texts = self._database.texts(np.array([owner.candidate for owner in owners.values()], dtype=np.int64))
        return [
            _part(texts[owner.candidate], owner.part) for owner in map(owners.__getitem__, vectors.tolist())
        ]


class OneVector(VectorOwners):
    """One vector for each candidate, with the same number."""

    def numbers(self, candidates: Ints, parts: CandidateParts | None) -> Ints:
        """The numbers of the candidates."""
        if parts is not None:
            raise InputError("this index has one vector for each candidate: add candidates without parts")
        return candidates

    def insert(self, vectors: Ints, candidates: Ints, parts: CandidateParts | None) -> None:
        """Nothing to store."""

    def vectors_of(self, candidates: Ints) -> Ints:
        """The numbers of the candidates."""
        return candidates

    def delete(self, candidates: Ints) -> None:
        """Nothing to forget."""

    def delete_orphans(self) -> None:
        """Nothing to forget."""

    def all_vectors(self) -> Ints:
        """The numbers of all candidates."""
        return self._database.all_numbers("candidates")

    def owners(self, vectors: Ints) -> dict[int, Owner]:
        """Every vector belongs to the candidate with its number, whole."""
        return {number: Owner(number, None) for number in vectors.tolist()}


class ChunkVectors(VectorOwners):
    """One vector for each chunk of a candidate, in a table of their own."""

    def numbers(self, candidates: Ints, parts: CandidateParts | None) -> Ints:
        """The next free numbers of the table."""
        if parts is None or len(parts) != len(candidates) or not all(parts):
            raise InputError("this index has a vector for each chunk: add every candidate with its parts")
        first = self._database.next_number("chunks")
        return np.arange(first, first + sum(map(len, parts)), dtype=np.int64)

    def insert(self, vectors: Ints, candidates: Ints, parts: CandidateParts | None) -> None:
        """Store the candidate and the characters of each chunk."""
        flat = [
            (number, part.start, part.end)
            for number, of in zip(candidates.tolist(), parts or (), strict=True)
            for part in of
        ]
        rows = [(number, *row) for number, row in zip(vectors.tolist(), flat, strict=True)]
        self._database.insert_rows("chunks", rows)

    def vectors_of(self, candidates: Ints) -> Ints:
        """The numbers of the chunks of some candidates."""
        rows = self._database.select_in("SELECT number FROM chunks WHERE candidate IN", candidates.tolist())
        return np.array(sorted(number for (number,) in rows), dtype=np.int64)

    def delete(self, candidates: Ints) -> None:
        """Delete the chunks of some candidates."""
        self._database.delete_rows("chunks", "candidate", candidates.tolist())

    def delete_orphans(self) -> None:
        """Delete the chunks of candidates that are gone."""
        orphans = "SELECT number FROM chunks WHERE candidate NOT IN (SELECT number FROM candidates)"
        rows = self._database.query(orphans)
        self._database.delete_rows("chunks", "number", [number for (number,) in rows])

    def all_vectors(self) -> Ints:
        """The numbers of all chunks."""
        return self._database.all_numbers("chunks")

    def owners(self, vectors: Ints) -> dict[int, Owner]:
        """The candidate and the characters of each chunk."""
        rows = self._database.select_in(
            "SELECT number, candidate, start, stop FROM chunks WHERE number IN", vectors.tolist()
        )
        return {number: Owner(candidate, Part(start, stop)) for number, candidate, start, stop in rows}


def _part(text: str, part: Part | None) -> str:
    return text if part is None else text[part.start : part.end]

"""``encode``: texts to vectors, in memory or in a file."""

from abc import abstractmethod
from asyncio import to_thread
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tercet.arrays import unit_vectors
from tercet.encoders.memory import release_free_memory
from tercet.errors import InputError
from tercet.files.vectors import NO_TEXTS, open_vectors, writing_vectors
from tercet.inputs import check_choice, check_context, check_count, check_many, check_text, describe
from tercet.records import Codes, Context, Floats, Ints, Progress, VectorFile
from tercet.scorers.finite import finite_vectors
from tercet.scorers.text_scorer import TextScorer
from tercet.settings.models import SIDES, Side


class Encoded(NamedTuple):
    """Codes in the form of the runtime (a candidate has one), and the truncated tokens of each text."""

    codes: Any
    truncated: Ints


class VectorScorer(TextScorer):
    """A scorer that has vectors of texts."""

    @property
    @abstractmethod
    def width(self) -> int:
        """D, the dimension of a vector."""

    @property
    @abstractmethod
    def max_codes(self) -> int:
        """M, the largest number of codes of a context."""

    @abstractmethod
    def _stream(
        self, texts: Iterable[Context], side: Side, on_progress: Progress | None = None
    ) -> Iterator[Encoded]:
        """Encode one window of texts at a time, in order."""

    @abstractmethod
    def _numpy(self, codes: Any) -> Codes:
        """Codes in the form of the runtime as arrays."""

    def encode(
        self,
        texts: Iterable[Context],
        path: str | PathLike[str] | None = None,
        *,
        side: Side = "candidate",
        normalize: bool = False,
        dimensions: int | None = None,
        overwrite: bool = False,
        on_progress: Progress | None = None,
    ) -> Floats:
        """``[N, D]``: the vector of each text; at least one text is needed.

        Args:
            texts: a list, or any iterable, which is consumed once.
            path: also write the vectors to this ``.npy`` file, in constant memory; the result is then
                memory-mapped from the file and read-only.
            side: which tower and prompt to use; contexts with several turns need ``"context"``.
            normalize: divide each vector by its norm.
            dimensions: keep only the first dimensions, before vectors are normalized. Useful for models
                trained with a Matryoshka loss; other models lose accuracy.
            overwrite: replace the file if it exists.
            on_progress: called with the number of texts done since the last call.
        """
        if path is not None:
            written = self.encode_to_file(
                texts,
                path,
                side=side,
                normalize=normalize,
                dimensions=dimensions,
                overwrite=overwrite,
                on_progress=on_progress,
            )
            return open_vectors(written.path)
        if overwrite:
            raise InputError("overwrite needs a path: without one, no file is written")
        width = self._check_encoding(texts, side, dimensions)
        parts = [
            _finished(self._numpy(encoded.codes), width, normalize=normalize)
            for encoded in self._stream(_check_lazily(texts, side), side, on_progress)
        ]
        if not parts:
            raise InputError(NO_TEXTS)
        return np.concatenate(parts)

    async def aencode(
        self,
        texts: Iterable[Context],
        path: str | PathLike[str] | None = None,
        *,
        side: Side = "candidate",
        normalize: bool = False,
        dimensions: int | None = None,
        overwrite: bool = False,
        on_progress: Progress | None = None,
    ) -> Floats:
        """As ``encode``, in another thread, which also calls ``on_progress``."""
        return await to_thread(
            self.encode,
            texts,
            path,
            side=side,
            normalize=normalize,
            dimensions=dimensions,
            overwrite=overwrite,
            on_progress=on_progress,
        )

    def encode_to_file(
        self,
        texts: Iterable[Context],
        path: str | PathLike[str],
        *,
        side: Side = "candidate",
        normalize: bool = False,
        dimensions: int | None = None,
        overwrite: bool = False,
        on_progress: Progress | None = None,
    ) -> VectorFile:
        """As ``encode`` with a path, but returns the counts of vectors and of truncated texts.

        The file appears under its name when all vectors are written.
        """
        width = self._check_encoding(texts, side, dimensions)
        truncated = 0
        with writing_vectors(Path(path), overwrite=overwrite) as writer:
            for encoded in self._stream(_check_lazily(texts, side), side, on_progress):
                writer.append(_finished(self._numpy(encoded.codes), width, normalize=normalize))
                truncated += int(np.count_nonzero(encoded.truncated))
                release_free_memory()
        return VectorFile(path=Path(path), count=writer.count, width=writer.width, truncated=truncated)

    def _check_encoding(self, texts: object, side: Side, dimensions: int | None) -> int:
        """The number of dimensions to keep, if the arguments of ``encode`` are valid."""
        check_choice("side", side, SIDES)
        if isinstance(texts, str):
            raise InputError(f"texts must be a list, got {describe(texts)}: use encode([text])[0]")
        if side == "context" and self.max_codes > 1:
            raise InputError(
                f"a context of this model has up to {self.max_codes} vectors, and encode makes one per text: "
                "encode candidates, or use encode_contexts"
            )
        if dimensions is not None and check_count("dimensions", dimensions) > self.width:
            raise InputError(
                f"dimensions must be at most {self.width}, the width of this model's vectors, got "
                f"{dimensions}"
            )
        return self.width if dimensions is None else dimensions


def _finished(codes: Codes, width: int, *, normalize: bool) -> Floats:
    """``[N, width]``: the first dimensions of the only code of each text."""
    vectors = finite_vectors(np.ascontiguousarray(codes.vectors[:, 0, :width]))
    return unit_vectors(vectors) if normalize else vectors


def _check_lazily(texts: Iterable[Context], side: Side) -> Iterator[Context]:
    check = check_context if side == "context" else check_text
    return (check(text, f"text {position}") for position, text in enumerate(check_many(texts, "texts")))

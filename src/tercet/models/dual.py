"""Dual encoders: contexts and candidates become vectors apart from each other."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tercet.config import SIDES, Side
from tercet.errors import InputError
from tercet.index.vectors import writing_vectors
from tercet.inputs import (
    check_candidates,
    check_choice,
    check_context,
    check_contexts,
    check_many,
    check_text,
)
from tercet.models.code_layer import CodeTensors
from tercet.models.neural import NeuralScorer, distinct
from tercet.models.tokenizer import TokenIds
from tercet.records import Codes, Context, Counts, Floats, Scores, VectorFile
from tercet.runtime.batches import batches_by_tokens, windows
from tercet.runtime.memory import release_free_memory

CODES_IN_MEMORY = 2**24
"""How many numbers of codes are held at once while many contexts are scored: 64 MB."""


class Encoded(NamedTuple):
    """Codes (a candidate has one), and for each text how many of its tokens were not read."""

    codes: Codes
    cuts: Counts


class DualEncoder(NeuralScorer):
    """A scorer whose candidates can be encoded once and kept."""

    @abstractmethod
    def context_codes(self, ids: Sequence[Sequence[int]]) -> CodeTensors:
        """The codes of each context, with gradients where they are wanted."""

    @abstractmethod
    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vector of each candidate, with gradients where they are wanted."""

    @abstractmethod
    def match_codes(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        """``[B, C]``: the scores of codes against candidates ``[C, D]`` or ``[B, C, D]``."""

    @property
    @abstractmethod
    def width(self) -> int:
        """D, the length of a vector."""

    @property
    @abstractmethod
    def most_codes(self) -> int:
        """M, how many codes a context can have."""

    @property
    @abstractmethod
    def siamese(self) -> bool:
        """Whether a context's one code is the vector it would have as a candidate, of the same tokens."""

    @property
    def attention_scale(self) -> float:
        """How sharply a candidate attends to the codes of a context."""
        return 1.0

    @property
    def score_scale(self) -> float:
        """What a score is multiplied by in the end."""
        return 1.0

    @property
    def by_angle(self) -> bool:
        """Whether scores compare the directions of vectors, whatever their lengths."""
        return False

    def prompt(self, side: Side) -> str:
        """What is put in front of every text of a side."""
        return ""

    def encode_contexts(self, contexts: Iterable[Context]) -> Codes:
        """The codes of each context; a bi-encoder has one, M = 1."""
        return self._encode(check_contexts(contexts), "context").codes

    def encode_candidates(
        self, candidates: Iterable[str], *, on_progress: Callable[[int], None] | None = None
    ) -> Floats:
        """``[C, D]``: the vector of each candidate.

        Args:
            on_progress: called with the number of candidates done since the last call.
        """
        encoded = self._encode(check_candidates(candidates), "candidate", on_progress)
        vectors: Floats = encoded.codes.vectors[:, 0]
        return vectors

    def match(self, codes: Codes, vectors: Floats) -> Floats:
        """``[B, C]``: the scores of contexts against candidates ``[C, D]``, both encoded before."""
        self.check_one_way()
        return self._match(codes, vectors)

    def match_pairs(self, codes: Codes, vectors: Floats) -> Floats:
        """``[B]``: the scores of contexts against one candidate each, ``[B, D]``, both encoded before."""
        self.check_one_way()
        return self._match_pairs(codes, vectors)

    def encode(
        self,
        texts: Iterable[Context],
        path: str | PathLike[str],
        *,
        side: Side = "candidate",
        overwrite: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> VectorFile:
        """Write the vectors of any number of texts to a ``.npy`` file, in constant memory.

        Args:
            texts: read once, a window at a time; it may be endless only as far as the disk is.
            path: appears when all is done, and not at all if something fails.
            side: which tower reads; contexts of several turns need ``"context"``.
            on_progress: called with the number of texts done since the last call.
        """
        check_choice("side", side, SIDES)
        if side == "context" and self.most_codes > 1:
            raise InputError(
                f"a context of this model has up to {self.most_codes} vectors, and the file holds one "
                "for each text: write candidates, and use encode_contexts for contexts"
            )
        checked = _check_lazily(texts, side)
        cut = 0
        with writing_vectors(Path(path), overwrite=overwrite) as writer:
            for encoded in self._stream(checked, side, on_progress):
                writer.append(encoded.codes.vectors[:, 0])
                cut += int(np.count_nonzero(encoded.cuts))
                release_free_memory()
        return VectorFile(path=Path(path), count=writer.count, width=writer.width, cut=cut)

    def token_ids(self, texts: Sequence[Context], side: Side) -> list[list[int]]:
        """The tokens of each text, cut to what is read, with prompt and special tokens."""
        return [tokens.ids for tokens in self._tokenise(texts, side)]

    def context_cuts(self, contexts: Iterable[Context]) -> Counts:
        """``[B]``: how many tokens of each context the model has no room for."""
        return _cuts(self._tokenise(check_contexts(contexts), "context"))

    def candidate_cuts(self, candidates: Iterable[str]) -> Counts:
        """``[C]``: how many tokens of each candidate the model has no room for."""
        return _cuts(self._tokenise(check_candidates(candidates), "candidate"))

    def check_one_way(self) -> None:
        """Raise if a context's codes and a candidate's vector do not make the whole score."""

    def _match(self, codes: Codes, vectors: Floats) -> Floats:
        with torch.inference_mode():
            return _numpy(self.match_codes(_tensors(codes), _tensor(vectors)))

    def _match_pairs(self, codes: Codes, vectors: Floats) -> Floats:
        with torch.inference_mode():
            return _numpy(self.match_codes(_tensors(codes), _tensor(vectors).unsqueeze(1)))[:, 0]

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Scores:
        right = self._encode(candidates, "candidate")
        rows: list[Floats] = []
        cuts: list[Counts] = []
        for group in self._groups(len(contexts)):
            left = self._encode(contexts[group], "context")
            rows.append(self._match(left.codes, right.codes.vectors[:, 0]))
            cuts.append(left.cuts)
        return Scores(
            values=np.concatenate(rows),
            context_cuts=np.concatenate(cuts)[:, None],
            candidate_cuts=right.cuts[None, :],
        )

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Floats:
        """Every text is computed once, however often it comes, and only a group's codes are held."""
        vectors = self._vectors(candidates)
        different, which = distinct(contexts)
        order = np.argsort(which, kind="stable")  # pairs, by their context
        scores = np.empty(len(contexts), dtype=np.float32)
        for group in self._groups(len(different)):
            codes = self._encode(different[group], "context").codes
            first, last = np.searchsorted(which[order], [group.start, group.start + len(codes)])
            for part in self._groups(int(last - first)):
                pairs = order[first:last][part]
                scores[pairs] = self._match_pairs(codes.take(which[pairs] - group.start), vectors[pairs])
        return scores

    def _groups(self, count: int) -> Iterator[slice]:
        """Slices of contexts whose codes fit into memory together."""
        size = max(1, CODES_IN_MEMORY // (self.most_codes * self.width))
        return (slice(start, start + size) for start in range(0, count, size))

    def _vectors(self, candidates: Sequence[Context]) -> Floats:
        """``[C, D]``; a candidate that comes again is not computed again."""
        different, which = distinct(candidates)
        vectors: Floats = self._encode(different, "candidate").codes.vectors[which, 0]
        return vectors

    def _encode(
        self, texts: Sequence[Context], side: Side, on_progress: Callable[[int], None] | None = None
    ) -> Encoded:
        parts = list(self._stream(texts, side, on_progress))
        return Encoded(
            codes=_joined([part.codes for part in parts]),
            cuts=np.concatenate([part.cuts for part in parts]),
        )

    def _stream(
        self, texts: Iterable[Context], side: Side, on_progress: Callable[[int], None] | None = None
    ) -> Iterator[Encoded]:
        """Encode a window of texts at a time, in order."""
        for window in windows(texts, self.batching, size_of=_characters):
            tokens = self._tokenise(window, side)
            cuts = _cuts(tokens)
            self._warn_once(cuts, f"{side}s", f"{side}_cuts(...) and rankings count")
            yield Encoded(self._forward(tokens, side, on_progress), cuts)

    @torch.inference_mode()
    def _forward(
        self, tokens: Sequence[TokenIds], side: Side, on_progress: Callable[[int], None] | None
    ) -> Codes:
        self._check_evaluating()
        parts: list[Codes] = []
        order: list[int] = []
        for batch in batches_by_tokens([len(text.ids) for text in tokens], self._token_budget()):
            parts.append(self._read_batch([tokens[position].ids for position in batch], side))
            order += batch
            if on_progress is not None:
                on_progress(len(batch))
        return _joined(parts).take(np.argsort(order))

    def _read_batch(self, ids: Sequence[Sequence[int]], side: Side) -> Codes:
        if side == "context":
            codes = self.context_codes(ids)
            return Codes(_numpy(codes.vectors), codes.mask.cpu().numpy())
        vectors = _numpy(self.candidate_vectors(ids))
        return Codes(vectors[:, None], np.ones((len(vectors), 1), dtype=np.bool_))

    def _tokenise(self, texts: Sequence[Context], side: Side) -> list[TokenIds]:
        return self.tokenizer.encode(self._passages(texts), prompt=self.prompt(side))


def _joined(parts: Sequence[Codes]) -> Codes:
    """All the codes, those of short contexts filled up."""
    most = max(part.mask.shape[1] for part in parts)
    filled = [(0, most - part.mask.shape[1]) for part in parts]
    vectors = [
        part.vectors if not more[1] else np.pad(part.vectors, ((0, 0), more, (0, 0)))
        for part, more in zip(parts, filled, strict=True)
    ]
    masks = [np.pad(part.mask, ((0, 0), more)) for part, more in zip(parts, filled, strict=True)]
    return Codes(np.concatenate(vectors), np.concatenate(masks))


def _tensors(codes: Codes) -> CodeTensors:
    return CodeTensors(_tensor(codes.vectors), torch.from_numpy(codes.mask))


def _tensor(vectors: Floats) -> Tensor:
    """The vectors without a copy, those of a file that is mapped into memory too."""
    values = np.ascontiguousarray(vectors, dtype=np.float32)
    return torch.from_numpy(values if values.flags.writeable else np.asarray(_Readable(values)))


class _Readable:
    """An array that does not say it is read-only: torch would warn, though nothing here writes to it."""

    def __init__(self, values: Floats) -> None:
        self.values = values  # which own the memory
        self.__array_interface__ = values.__array_interface__ | {"data": (values.ctypes.data, False)}


def _numpy(tensor: Tensor) -> Floats:
    values: Floats = tensor.float().cpu().numpy()
    return values


def _check_lazily(texts: Iterable[Context], side: Side) -> Iterator[Context]:
    check = check_context if side == "context" else check_text
    return (check(text, f"text {position}") for position, text in enumerate(check_many(texts, "texts")))


def _characters(text: Context) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _cuts(tokens: Sequence[TokenIds]) -> Counts:
    return np.array([text.cut for text in tokens], dtype=np.int64)

"""Dual encoders: contexts and candidates become vectors apart from each other."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tercet.config import SIDES, BatchConfig, Side
from tercet.errors import InputError, TruncationWarning
from tercet.index.vectors import writing_vectors
from tercet.inputs import (
    check_candidates,
    check_choice,
    check_context,
    check_contexts,
    check_many,
    check_text,
)
from tercet.models.scorer import Scorer
from tercet.models.tokenizer import Passage, TokenIds, Tokenizer
from tercet.records import Context, Counts, Floats, Scores, VectorFile
from tercet.runtime.batches import batches_by_tokens, windows
from tercet.runtime.memory import release_free_memory


class Encoded(NamedTuple):
    """Vectors, and for each how many tokens of its text were not read."""

    vectors: Floats
    cuts: Counts


class DualEncoder(nn.Module, Scorer):
    """A scorer whose candidates can be encoded once and kept."""

    def __init__(self, tokenizer: Tokenizer, *, turn_separator: str) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.turn_separator = turn_separator
        self.batching = BatchConfig()
        self._warned = False

    @abstractmethod
    def context_codes(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[B, M, D]``: the codes of each context, with gradients where they are wanted."""

    @abstractmethod
    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vector of each candidate, with gradients where they are wanted."""

    @abstractmethod
    def prompt(self, side: Side) -> str:
        """What is put in front of every text of a side."""

    @abstractmethod
    def match(self, codes: Floats, vectors: Floats) -> Floats:
        """``[B, C]``: the scores of codes ``[B, M, D]`` against candidates ``[C, D]``."""

    @abstractmethod
    def match_pairs(self, codes: Floats, vectors: Floats) -> Floats:
        """``[B]``: the scores of codes ``[B, M, D]`` against one candidate each, ``[B, D]``."""

    def encode_contexts(self, contexts: Iterable[Context]) -> Floats:
        """``[B, M, D]``: the codes of each context; a bi-encoder has one, M = 1."""
        return self._encode(check_contexts(contexts), "context").vectors

    def encode_candidates(self, candidates: Iterable[str]) -> Floats:
        """``[C, D]``: the vector of each candidate."""
        return self._encode(check_candidates(candidates), "candidate").vectors

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
        checked = _check_lazily(texts, side)
        cut = 0
        with writing_vectors(Path(path), overwrite=overwrite) as writer:
            for encoded in self._stream(checked, side, on_progress):
                writer.append(encoded.vectors)
                cut += int(np.count_nonzero(encoded.cuts))
                release_free_memory()
        return VectorFile(path=Path(path), count=writer.count, width=writer.width, cut=cut)

    def context_cuts(self, contexts: Iterable[Context]) -> Counts:
        """``[B]``: how many tokens of each context the model has no room for."""
        return _cuts(self._tokenise(check_contexts(contexts), "context"))

    def candidate_cuts(self, candidates: Iterable[str]) -> Counts:
        """``[C]``: how many tokens of each candidate the model has no room for."""
        return _cuts(self._tokenise(check_candidates(candidates), "candidate"))

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        left, right = self._encode(contexts, "context"), self._encode(candidates, "candidate")
        return Scores(
            values=self.match(left.vectors, right.vectors),
            context_cuts=left.cuts[:, None],
            candidate_cuts=right.cuts[None, :],
        )

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        codes = self._encode_distinct(contexts, "context")
        return self.match_pairs(codes, self._encode_distinct(candidates, "candidate"))

    def _encode(self, texts: Sequence[Context], side: Side) -> Encoded:
        parts = list(self._stream(texts, side))
        return Encoded(
            vectors=np.concatenate([part.vectors for part in parts]),
            cuts=np.concatenate([part.cuts for part in parts]),
        )

    def _encode_distinct(self, texts: Sequence[Context], side: Side) -> Floats:
        """As ``_encode``, but a text that comes again is not computed again."""
        place = {text: position for position, text in enumerate(dict.fromkeys(texts))}
        vectors: Floats = self._encode(list(place), side).vectors[[place[text] for text in texts]]
        return vectors

    def _stream(
        self, texts: Iterable[Context], side: Side, on_progress: Callable[[int], None] | None = None
    ) -> Iterator[Encoded]:
        """Encode a window of texts at a time, in order."""
        for window in windows(texts, self.batching, characters_of=_characters):
            tokens = self._tokenise(window, side)
            cuts = _cuts(tokens)
            self._warn_once(cuts, side)
            yield Encoded(self._forward(tokens, side, on_progress), cuts)

    @torch.inference_mode()
    def _forward(
        self, tokens: Sequence[TokenIds], side: Side, on_progress: Callable[[int], None] | None
    ) -> Floats:
        if self.training:
            raise InputError("a scorer in training mode drops numbers at random: call .eval() before scoring")
        forward = self.context_codes if side == "context" else self.candidate_vectors
        on_cpu = next(self.parameters()).device.type == "cpu"
        budget = self.batching.tokens if on_cpu else self.batching.gpu_tokens
        parts: list[Floats] = []
        order: list[int] = []
        for batch in batches_by_tokens([len(text.ids) for text in tokens], budget):
            parts.append(forward([tokens[position].ids for position in batch]).float().cpu().numpy())
            order += batch
            if on_progress is not None:
                on_progress(len(batch))
        vectors: Floats = np.concatenate(parts)[np.argsort(order)]
        return vectors

    def _tokenise(self, texts: Sequence[Context], side: Side) -> list[TokenIds]:
        passages = [
            Passage(text) if isinstance(text, str) else Passage(self.turn_separator.join(text), keep_end=True)
            for text in texts
        ]
        return self.tokenizer.encode(passages, prompt=self.prompt(side))

    def _warn_once(self, cuts: Counts, side: Side) -> None:
        cut = int(np.count_nonzero(cuts))
        if not cut or self._warned:
            return
        self._warned = True
        warnings.warn(
            f"{cut} of {len(cuts)} {side}s were longer than the {self.tokenizer.max_tokens} tokens this "
            f"model reads, and were cut (said once; {side}_cuts(...) and rankings count the tokens)",
            TruncationWarning,
            stacklevel=2,
        )


def _check_lazily(texts: Iterable[Context], side: Side) -> Iterator[Context]:
    check = check_context if side == "context" else check_text
    return (check(text, f"text {position}") for position, text in enumerate(check_many(texts, "texts")))


def _characters(text: Context) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _cuts(tokens: Sequence[TokenIds]) -> Counts:
    return np.array([text.cut for text in tokens], dtype=np.int64)

"""Dual encoders: contexts and candidates are encoded independently, so candidates can be cached."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from tercet.encoders.batches import batches_by_tokens, observed, windows
from tercet.errors import InputError
from tercet.inputs import check_candidates, check_choice, check_contexts
from tercet.records import Codes, Context, Floats, Ints, Progress, Scores
from tercet.scorers.codes import CodeTensors
from tercet.scorers.encode import Encoded, VectorEncoder, to_numpy
from tercet.scorers.finite import finite_scores, finite_vectors
from tercet.scorers.neural import distinct
from tercet.settings.models import SIDES, Side
from tercet.text.tokenizer import Passage, TokenIds, span_of
from tercet.text.words import Span

CODES_IN_MEMORY = 2**24
"""Maximum size of the codes in memory while many contexts are scored, in numbers: 64 MB."""


class DualEncoder(VectorEncoder):
    """A scorer whose candidates can be encoded once and cached."""

    @abstractmethod
    def context_codes(self, ids: Sequence[Sequence[int]]) -> CodeTensors:
        """The codes of tokenized contexts, with gradients if enabled."""

    @abstractmethod
    def candidate_vectors(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """``[C, D]``: the vectors of tokenized candidates, with gradients if enabled."""

    @abstractmethod
    def match_tensors(self, codes: CodeTensors, candidates: Tensor) -> Tensor:
        """``[B, C]``: the scores of codes against candidates ``[C, D]`` or ``[B, C, D]``."""

    @property
    @abstractmethod
    def is_siamese(self) -> bool:
        """Whether a text gets the same single vector as a context and as a candidate."""

    @property
    def attention_scale(self) -> float:
        """Multiplies the logits of the candidates' attention over the codes."""
        return 1.0

    @property
    def score_scale(self) -> float:
        """Multiplies the scores."""
        return 1.0

    @property
    def uses_cosine(self) -> bool:
        """Whether vectors must be normalized before they are compared."""
        return False

    @property
    def scores_are_cosines(self) -> bool:
        """Whether a score is a cosine, times ``score_scale``."""
        return self.uses_cosine

    @property
    def is_symmetric(self) -> bool:
        """Whether a score is the mean of both directions, so that cached vectors do not determine it."""
        return False

    def prompt(self, side: Side) -> str:
        """The prefix of every text of a side."""
        return ""

    def encode_contexts(self, contexts: Iterable[Context]) -> Codes:
        """The codes of each context; a bi-encoder has one, M = 1."""
        codes = self._encode(check_contexts(contexts), "context").codes
        return Codes(finite_vectors(to_numpy(codes.vectors)), codes.mask.cpu().numpy())

    def encode_candidates(self, candidates: Iterable[str], *, on_progress: Progress | None = None) -> Floats:
        """``[C, D]``: the vector of each candidate.

        Args:
            on_progress: called with the number of candidates done since the last call.
        """
        encoded = self._encode(check_candidates(candidates), "candidate", on_progress)
        return finite_vectors(to_numpy(encoded.codes.vectors[:, 0]))

    def tokenize(self, texts: Sequence[Context], side: Side) -> list[TokenIds]:
        """The first step of encoding: the tokens of each text, truncated. The texts are not checked."""
        return self.tokenizer.encode(self._passages(texts), prompt=self.prompt(side))

    def encode_tokens(self, tokens: Sequence[TokenIds], side: Side) -> Codes:
        """The second step of encoding: the codes of tokenized texts; a candidate has one."""
        codes = self._forward(tokens, side, None)
        return Codes(finite_vectors(to_numpy(codes.vectors)), codes.mask.cpu().numpy())

    def match(self, codes: Codes, vectors: "Floats | Tensor") -> Floats:
        """``[B, C]``: the scores of encoded contexts against encoded candidates, on the model's device.

        Args:
            vectors: ``[C, D]``, the same candidates for all contexts, or ``[B, C, D]``; a tensor on the
                model's device is not copied.
        """
        self.check_asymmetric()
        return self.match_codes(codes, vectors)

    @torch.inference_mode()
    def match_codes(self, codes: Codes, vectors: "Floats | Tensor") -> Floats:
        """As ``match``, but of a symmetric score this is one direction."""
        mask = torch.from_numpy(codes.mask).to(self.device)
        tensors = CodeTensors(_tensor(codes.vectors).to(self.device), mask)
        candidates = vectors if isinstance(vectors, Tensor) else _tensor(vectors)
        return finite_scores(to_numpy(self.match_tensors(tensors, candidates.to(self.device))))

    def token_ids(self, texts: Sequence[Context], side: Side) -> list[list[int]]:
        """The tokens of each text, truncated, with prompt and special tokens."""
        return [tokens.ids for tokens in self._tokenize(texts, side)]

    def truncated_tokens(self, texts: Iterable[Context], side: Side) -> Ints:
        """``[N]``: how many tokens of each text exceed the model's maximum length."""
        check_choice("side", side, SIDES)
        checked = check_contexts(texts) if side == "context" else check_candidates(texts)
        return _truncated(self._tokenize(checked, side))

    def _candidate_room(self) -> int:
        return self.tokenizer.room(self.prompt("candidate"))

    def check_asymmetric(self) -> None:
        """Raise if codes of contexts and vectors of candidates do not determine the score."""
        if self.is_symmetric:
            raise InputError(
                "a symmetric score needs codes and vectors of both texts: use score, score_many or "
                "score_pairs"
            )

    @torch.inference_mode()
    def _scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Scores:
        right = self._encode(candidates, "candidate")
        vectors = right.codes.vectors[:, 0]
        rows: list[Floats] = []
        truncated: list[Ints] = []
        for group in self._groups(len(contexts)):
            left = self._encode(contexts[group], "context")
            rows.append(to_numpy(self.match_tensors(left.codes, vectors)))
            truncated.append(left.truncated)
        return Scores(
            values=np.concatenate(rows),
            context_truncated=np.concatenate(truncated)[:, None],
            candidate_truncated=right.truncated[None, :],
        )

    @torch.inference_mode()
    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Floats:
        """Each distinct text is encoded once, and only the codes of one group are in memory."""
        texts, which_text = distinct(candidates)
        vectors = self._encode(texts, "candidate").codes.vectors[:, 0]
        different, which = distinct(contexts)
        order = np.argsort(which, kind="stable")  # pairs, by their context
        scores = np.empty(len(contexts), dtype=np.float32)
        for group in self._groups(len(different)):
            codes = self._encode(different[group], "context").codes
            first, last = np.searchsorted(which[order], [group.start, group.start + len(codes.vectors)])
            for part in self._groups(int(last - first)):
                pairs = order[first:last][part]
                left = codes.take(torch.from_numpy(which[pairs] - group.start))
                right = vectors[torch.from_numpy(which_text[pairs])].unsqueeze(1)  # [B, 1, D]
                scores[pairs] = to_numpy(self.match_tensors(left, right))[:, 0]
        return scores

    def _groups(self, count: int) -> Iterator[slice]:
        """Slices of contexts whose codes fit into memory together."""
        size = max(1, CODES_IN_MEMORY // (self.max_codes * self.width))
        return (slice(start, start + size) for start in range(0, count, size))

    def _encode(self, texts: Sequence[Context], side: Side, on_progress: Progress | None = None) -> Encoded:
        parts = list(self._stream(texts, side, on_progress))
        return Encoded(
            codes=_joined([part.codes for part in parts]),
            truncated=np.concatenate([part.truncated for part in parts]),
        )

    def _stream(
        self, texts: Iterable[Context], side: Side, on_progress: Progress | None = None
    ) -> Iterator[Encoded]:
        """Encode one window of texts at a time, in order."""
        for window in windows(texts, self.encoding, size_of=_characters):
            tokens = self._tokenize(window, side)
            truncated = _truncated(tokens)
            self._warn_once(truncated, f"{side}s")
            yield Encoded(self._forward(tokens, side, on_progress), truncated)

    @torch.inference_mode()
    def _forward(self, tokens: Sequence[TokenIds], side: Side, on_progress: Progress | None) -> CodeTensors:
        self._check_evaluating()
        parts: list[CodeTensors] = []
        order: list[int] = []
        for batch in observed(batches_by_tokens([len(text.ids) for text in tokens], self.token_budget)):
            parts.append(self._run_batch([tokens[position].ids for position in batch], side))
            order += batch
            if on_progress is not None:
                on_progress(len(batch))
        return _joined(parts).take(torch.from_numpy(np.argsort(order)))

    def _run_batch(self, ids: Sequence[Sequence[int]], side: Side) -> CodeTensors:
        if side == "context":
            codes = self.context_codes(ids)
            return CodeTensors(codes.vectors.float(), codes.mask)
        vectors = self.candidate_vectors(ids).float().unsqueeze(1)
        return CodeTensors(vectors, torch.ones(len(vectors), 1, dtype=torch.bool, device=vectors.device))

    def _read_spans(self, passages: Sequence[Passage], truncated: tuple[int, int]) -> tuple[Span, Span]:
        left, right = (
            self.tokenizer.pieces(passage, prompt=self.prompt(side))
            for passage, side in zip(passages, SIDES, strict=True)
        )
        return span_of(left), span_of(right)

    def _tokenize(self, texts: Sequence[Context], side: Side) -> list[TokenIds]:
        self._warn_of_script(texts)
        return self.tokenize(texts, side)


def padded_codes(codes: Tensor, count: int) -> Tensor:
    """``[B, count, ...]``: codes ``[B, M, ...]`` with zeros for those that are missing."""
    if codes.shape[1] == count:
        return codes
    missing = codes.new_zeros(len(codes), count - codes.shape[1], *codes.shape[2:])
    return torch.cat([codes, missing], dim=1)


def _joined(parts: Sequence[CodeTensors]) -> CodeTensors:
    """The codes of all parts; those of short contexts are padded."""
    if len(parts) == 1:
        return parts[0]
    most = max(part.mask.shape[1] for part in parts)
    return CodeTensors(
        torch.cat([padded_codes(part.vectors, most) for part in parts]),
        torch.cat([padded_codes(part.mask, most) for part in parts]),
    )


def _tensor(vectors: Floats) -> Tensor:
    """The vectors without a copy, even if they are memory-mapped."""
    values = np.ascontiguousarray(vectors, dtype=np.float32)
    return torch.from_numpy(values if values.flags.writeable else np.asarray(_ReadOnlyView(values)))


class _ReadOnlyView:
    """An array that hides that it is read-only: torch would warn, though nothing here writes to it."""

    def __init__(self, values: Floats) -> None:
        self.values = values  # keeps the memory alive
        self.__array_interface__ = values.__array_interface__ | {"data": (values.ctypes.data, False)}


def _characters(text: Context) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _truncated(tokens: Sequence[TokenIds]) -> Ints:
    return np.array([text.truncated for text in tokens], dtype=np.int64)

"""Dual encoders: contexts and candidates are encoded independently, so candidates can be cached.

Nothing here imports torch: a runtime adds how a batch is encoded and how codes are matched with vectors.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import numpy as np

from tercet.encoders.batches import batches_by_tokens, observed, windows
from tercet.errors import InputError
from tercet.index.scan import Scan
from tercet.inputs import check_candidates, check_choice, check_contexts
from tercet.records import Codes, Context, Floats, Ints, Progress, Scores
from tercet.scorers.encode import Encoded, VectorScorer
from tercet.scorers.finite import finite_vectors
from tercet.scorers.text_scorer import distinct
from tercet.settings.models import SIDES, Side
from tercet.text.tokenizer import Passage, TokenIds, span_of
from tercet.text.words import Span

CODES_IN_MEMORY = 2**24
"""Maximum size of the codes in memory while many contexts are scored, in numbers: 64 MB."""


class DualScorer(VectorScorer):
    """A scorer whose candidates can be encoded once and cached."""

    @abstractmethod
    def match_codes(self, codes: Codes, vectors: Any) -> Floats:
        """As ``match``, but of a symmetric score this is one direction."""

    @abstractmethod
    def _run_batch(self, ids: Sequence[Sequence[int]], side: Side) -> Any:
        """The codes of a batch of tokenized texts, in the form of the runtime; a candidate has one."""

    @abstractmethod
    def _joined(self, parts: Sequence[Any]) -> Any:
        """The codes of several batches; those of short contexts are padded."""

    @abstractmethod
    def _match(self, codes: Any, vectors: Any) -> Floats:
        """``[B, C]``: the scores of codes against vectors ``[C, D]`` or ``[B, C, D]``, all in the form of the
        runtime."""

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
        return self._finite(self._encode(check_contexts(contexts), "context").codes)

    def encode_candidates(self, candidates: Iterable[str], *, on_progress: Progress | None = None) -> Floats:
        """``[C, D]``: the vector of each candidate.

        Args:
            on_progress: called with the number of candidates done since the last call.
        """
        encoded = self._encode(check_candidates(candidates), "candidate", on_progress)
        vectors: Floats = self._finite(encoded.codes).vectors[:, 0]
        return vectors

    def tokenize(self, texts: Sequence[Context], side: Side) -> list[TokenIds]:
        """The first step of encoding: the tokens of each text, truncated. The texts are not checked."""
        return self.tokenizer.encode(self._passages(texts), prompt=self.prompt(side))

    def encode_tokens(self, tokens: Sequence[TokenIds], side: Side) -> Codes:
        """The second step of encoding: the codes of tokenized texts; a candidate has one."""
        return self._finite(self._forward(tokens, side, None))

    def match(self, codes: Codes, vectors: Any) -> Floats:
        """``[B, C]``: the scores of encoded contexts against encoded candidates, on the model's device.

        Args:
            vectors: ``[C, D]``, the same candidates for all contexts, or ``[B, C, D]``; a torch tensor or
                ``DeviceVectors`` on the model's device are not copied.
        """
        self.check_asymmetric()
        return self.match_codes(codes, vectors)

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

    def device_scan(self) -> Scan | None:
        """How an index is searched on the model's device; None if that is a CPU."""
        return None

    def check_asymmetric(self) -> None:
        """Raise if codes of contexts and vectors of candidates do not determine the score."""
        if self.is_symmetric:
            raise InputError(
                "a symmetric score needs codes and vectors of both texts: use score, score_many or "
                "score_pairs"
            )

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Scores:
        there = self._directed_scores(contexts, candidates)
        if not self.is_symmetric:
            return there
        back = self._directed_scores(candidates, contexts)
        mean: Floats = (there.values + back.values.T) / np.float32(2)
        return Scores(mean, there.context_truncated, there.candidate_truncated)

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Floats:
        there = self._directed_pair_scores(contexts, candidates)
        if not self.is_symmetric:
            return there
        mean: Floats = (there + self._directed_pair_scores(candidates, contexts)) / np.float32(2)
        return mean

    def _directed_scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Scores:
        right = self._encode(candidates, "candidate")
        vectors = right.codes.vectors[:, 0]
        rows: list[Floats] = []
        truncated: list[Ints] = []
        for group in self._groups(len(contexts)):
            left = self._encode(contexts[group], "context")
            rows.append(self._match(left.codes, vectors))
            truncated.append(left.truncated)
        return Scores(
            values=np.concatenate(rows),
            context_truncated=np.concatenate(truncated)[:, None],
            candidate_truncated=right.truncated[None, :],
        )

    def _directed_pair_scores(self, contexts: Sequence[Context], candidates: Sequence[Context]) -> Floats:
        """Each distinct text is encoded once, and only the codes of one group are in memory."""
        texts, which_text = distinct(candidates)
        vectors = self._encode(texts, "candidate").codes.vectors  # [C, 1, D]
        different, which = distinct(contexts)
        order = np.argsort(which, kind="stable")  # pairs, by their context
        scores = np.empty(len(contexts), dtype=np.float32)
        for group in self._groups(len(different)):
            codes = self._encode(different[group], "context").codes
            first, last = np.searchsorted(which[order], [group.start, group.start + len(codes.vectors)])
            for part in self._groups(int(last - first)):
                pairs = order[first:last][part]
                left = codes.take(which[pairs] - group.start)
                scores[pairs] = self._match(left, vectors[which_text[pairs]])[:, 0]
        return scores

    def _groups(self, count: int) -> Iterator[slice]:
        """Slices of contexts whose codes fit into memory together."""
        size = max(1, CODES_IN_MEMORY // (self.max_codes * self.width))
        return (slice(start, start + size) for start in range(0, count, size))

    def _encode(self, texts: Sequence[Context], side: Side, on_progress: Progress | None = None) -> Encoded:
        parts = list(self._stream(texts, side, on_progress))
        return Encoded(
            codes=self._joined([part.codes for part in parts]),
            truncated=np.concatenate([part.truncated for part in parts]),
        )

    def _stream(
        self, texts: Iterable[Context], side: Side, on_progress: Progress | None = None
    ) -> Iterator[Encoded]:
        """Encode one window of texts at a time, in order."""
        for tokens in self._tokenized(windows(texts, self.encoding, size_of=_characters), side):
            truncated = _truncated(tokens)
            self._warn_once(truncated, f"{side}s")
            yield Encoded(self._forward(tokens, side, on_progress), truncated)

    def _tokenized(self, found: Iterator[list[Context]], side: Side) -> Iterator[list[TokenIds]]:
        """The tokens of each window. While a GPU encodes one, a thread tokenizes the next."""
        first, second = next(found, None), None if self.is_on_cpu else next(found, None)
        if first is None:
            return
        if second is None:
            yield from (self._tokenize(window, side) for window in chain([first], found))
            return
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenize") as threads:
            pending = threads.submit(self._tokenize, first, side)
            for window in chain([second], found):
                done, pending = pending, threads.submit(self._tokenize, window, side)
                yield done.result()
            yield pending.result()

    def _forward(self, tokens: Sequence[TokenIds], side: Side, on_progress: Progress | None) -> Any:
        self._check_ready()
        parts: list[Any] = []
        order: list[int] = []
        for batch in observed(batches_by_tokens([len(text.ids) for text in tokens], self.token_budget)):
            parts.append(self._run_batch([tokens[position].ids for position in batch], side))
            order += batch
            if on_progress is not None:
                on_progress(len(batch))
        return self._joined(parts).take(np.argsort(order))

    def _finite(self, codes: Any) -> Codes:
        found = self._numpy(codes)
        return Codes(finite_vectors(found.vectors), found.mask)

    def _read_spans(self, passages: Sequence[Passage], truncated: tuple[int, int]) -> tuple[Span, Span]:
        left, right = (
            self.tokenizer.pieces(passage, prompt=self.prompt(side))
            for passage, side in zip(passages, SIDES, strict=True)
        )
        return span_of(left), span_of(right)

    def _tokenize(self, texts: Sequence[Context], side: Side) -> list[TokenIds]:
        self._warn_of_script(texts)
        return self.tokenize(texts, side)


def _characters(text: Context) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def _truncated(tokens: Sequence[TokenIds]) -> Ints:
    return np.array([text.truncated for text in tokens], dtype=np.int64)

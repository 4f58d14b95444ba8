"""What scorers share, whatever runs their transformers: tokenizer, truncation, chunks, warnings."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import ClassVar

import numpy as np

from tercet.errors import InputError, TruncationWarning, UnreadableTextWarning
from tercet.records import Context, Ints, Part, as_text
from tercet.scorers.leave_one_out import ScoredPair
from tercet.scorers.scorer import Scorer
from tercet.settings.chunks import ChunkConfig
from tercet.settings.encoding import EncodingConfig
from tercet.settings.models import Precision, ScorerKind, Side
from tercet.text.chunks import split_text
from tercet.text.readable import find_unreadable
from tercet.text.tokenizer import Passage, Tokenizer
from tercet.text.words import Span

SPLIT_AT_ONCE = 64
"""Texts that are split into chunks together."""


class TextScorer(Scorer):
    """A scorer with a tokenizer. It imports no torch, so that other runtimes can build on it."""

    kind: ClassVar[ScorerKind]
    runtime: ClassVar[str]
    """What runs the transformer: torch or openvino."""

    tokenizer: Tokenizer
    turn_separator: str
    precision: Precision
    encoding: EncodingConfig
    _warned: bool
    _warned_of_script: bool

    def _set_text(self, tokenizer: Tokenizer, *, turn_separator: str, precision: Precision) -> None:
        """Set what this class needs; constructors call it."""
        self.tokenizer = tokenizer
        self.turn_separator = turn_separator
        self.precision = precision
        self.encoding = EncodingConfig()
        self._warned = False
        self._warned_of_script = False

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies these weights, settings and tokenizer; the same in every precision and runtime."""

    @property
    @abstractmethod
    def token_budget(self) -> int:
        """Tokens per forward pass."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The runtime and the device, for display."""

    @property
    @abstractmethod
    def is_on_cpu(self) -> bool:
        """Whether a CPU runs the transformer."""

    @abstractmethod
    def save(self, path: str | PathLike[str]) -> Path:
        """Write a new folder that ``tercet.load`` reads, and return its path."""

    @abstractmethod
    def _description(self) -> dict[str, object]:
        """Properties that only this kind of scorer has."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """The properties of the scorer, for display."""

    @abstractmethod
    def token_ids(self, texts: Sequence[Context], side: Side) -> list[list[int]]:
        """The tokens of each text, in the form that the forward pass takes in training."""

    @abstractmethod
    def _candidate_room(self) -> int:
        """How many tokens of a candidate the model reads."""

    @abstractmethod
    def _read_spans(self, passages: Sequence[Passage], truncated: tuple[int, int]) -> tuple[Span, Span]:
        """The characters of a context and of a candidate that were not truncated."""

    def _check_ready(self) -> None:
        """Raise if the scorer cannot compute scores in its present state."""

    def chunks(self, texts: Sequence[str], config: ChunkConfig) -> list[list[Part]]:
        """The chunks of each text, in order; a text that fits is one chunk."""
        room = self._candidate_room()
        size = room if config.size is None else config.size
        if size > room or config.overlap >= size:
            raise InputError(
                f"a chunk must have at most {room} tokens, which this model reads beside its special tokens, "
                f"and more than the overlap of {config.overlap}, got a size of {size}"
            )
        parts: list[list[Part]] = []
        for start in range(0, len(texts), SPLIT_AT_ONCE):  # tokens with their characters need much memory
            some = texts[start : start + SPLIT_AT_ONCE]
            pieces = self.tokenizer.word_pieces(some)
            parts += [split_text(text, of, config, size=size) for text, of in zip(some, pieces, strict=True)]
        return parts

    def _passages(self, texts: Sequence[Context]) -> list[Passage]:
        return [
            Passage(text) if isinstance(text, str) else Passage(self.turn_separator.join(text), keep_end=True)
            for text in texts
        ]

    def _scored_pair(self, context: Context, candidate: str) -> ScoredPair:
        scores = self._finite_scores([context], [candidate])
        truncated = int(scores.context_truncated.item()), int(scores.candidate_truncated.item())
        spans = self._read_spans(self._passages([context, candidate]), truncated)
        return ScoredPair(
            context=context,
            candidate=candidate,
            score=float(scores.values.item()),
            separator=self.turn_separator,
            context_span=spans[0],
            candidate_span=spans[1],
            context_truncated=truncated[0],
            candidate_truncated=truncated[1],
        )

    def _warn_once(self, truncated: Ints, what: str) -> None:
        count = int(np.count_nonzero(truncated))
        if not count or self._warned:
            return
        self._warned = True
        warnings.warn(
            f"{count} of {truncated.size} {what} are longer than this model's {self.tokenizer.max_tokens} "
            "tokens and were truncated (shown once; chunk=, --chunk splits long candidates)",
            TruncationWarning,
            stacklevel=2,
        )

    def _warn_of_script(self, texts: Sequence[Context]) -> None:
        """Warn once about texts that the vocabulary cannot read."""
        if self._warned_of_script:
            return
        found = find_unreadable(map(as_text, texts), self.tokenizer.spans)
        if found is None:
            return
        self._warned_of_script = True
        warnings.warn(
            f"this model's vocabulary cannot read {found.script}: {found.share:.0%} of {found.letters:,} "
            "letters are unknown or taken apart, so scores of such texts mean little. Use a model for this "
            "language, or search by words (tercet search --mode lexical)",
            UnreadableTextWarning,
            stacklevel=2,
        )


def distinct(texts: Sequence[Context]) -> tuple[list[Context], Ints]:
    """The distinct texts, and for each text the position of its copy among them."""
    position = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return list(position), np.array([position[text] for text in texts], dtype=np.int64)

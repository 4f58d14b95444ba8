"""A model whose results are known: the number of letters. Its time is under the control of a test."""

import threading
from collections.abc import Sequence
from typing import Any

from tercet.errors import ModelError
from tercet.serve.work import Lane, Tokenized


class LetterModel:
    """Counts letters; a token is a letter. ``gate`` holds forward passes, ``tokenizing`` the tokenizer."""

    batch_tokens = 16
    max_tokens = 1000

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.tokenizing = threading.Event()
        self.tokenizing.set()
        self.batches: list[tuple[Lane, list[str]]] = []
        self.tokenized: list[str] = []
        self.released = 0

    def tokenize(self, lane: Lane, texts: Sequence[str]) -> list[Tokenized]:
        """One token per letter; a text with a question mark cannot be tokenized."""
        assert self.tokenizing.wait(10)
        if any("?" in text for text in texts):
            raise ModelError("cannot be tokenized")
        self.tokenized += texts
        return [Tokenized(text, len(text), len(text), (max(len(text) - 8, 0),)) for text in texts]

    def run(self, lane: Lane, tokens: Sequence[Any]) -> list[int]:
        """The lengths; a text with an exclamation mark fails."""
        assert self.gate.wait(10)
        self.batches.append((lane, list(tokens)))
        if any("!" in text for text in tokens):
            raise ModelError("a text fails")
        return [len(text) for text in tokens]

    def release_memory(self) -> None:
        """Count the calls."""
        self.released += 1

"""Lexical overlap: the idf-weighted share of one text's words that another contains."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from unicodedata import normalize

import numpy as np

from tercet.records import Context, Floats, as_text
from tercet.text.cjk import split_cjk

WORD = re.compile(r"\w+")


class LexicalOverlap:
    """Overlap with the idf weights of BM25. Korean, Japanese and Chinese are split into character bigrams."""

    def __init__(self, texts: Iterable[str]) -> None:
        counts: Counter[str] = Counter()
        total = 0
        for text in texts:
            counts.update(_words(text))
            total += 1
        self._counts, self._total = counts, total

    def of_contexts(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """``[N]``, from 0 to 1: the share of each context's words that the candidate contains."""
        pairs = zip(contexts, candidates, strict=True)
        return np.array([self._share(as_text(left), right) for left, right in pairs], dtype=np.float32)

    def of_both(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """``[N]``: the mean of both directions."""
        texts = [as_text(context) for context in contexts]
        directions = [self.of_contexts(texts, candidates), self.of_contexts(candidates, texts)]
        mean: Floats = np.mean(directions, axis=0)
        return mean

    def _share(self, context: str, candidate: str) -> float:
        words = _words(context)
        shared = words & _words(candidate)
        return self._weight(shared) / self._weight(words) if words else 0.0

    def _weight(self, words: Iterable[str]) -> float:
        """The sum of idf; a word that occurs in no text counts most."""
        return sum(
            math.log(1 + (self._total - self._counts[word] + 0.5) / (self._counts[word] + 0.5))
            for word in words
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(split_cjk(normalize("NFKC", text).lower())))

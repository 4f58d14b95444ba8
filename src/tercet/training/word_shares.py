"""Which of a text's words another has: what a model that knows meanings easily overlooks."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from unicodedata import normalize

import numpy as np

from tercet.index.lexical import in_pairs
from tercet.records import Context, Floats, as_text

WORD = re.compile(r"\w+")


class WordShares:
    """Shares by the rarity of words, as in BM25; Korean, Japanese and Chinese count by pairs of letters, a
    letter alone by itself."""

    def __init__(self, texts: Iterable[str]) -> None:
        counts: Counter[str] = Counter()
        total = 0
        for text in texts:
            counts.update(_words(text))
            total += 1
        self._counts, self._total = counts, total

    def of_pairs(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """``[N]``, from 0 to 1: of each context's words those that the candidate has too."""
        pairs = zip(contexts, candidates, strict=True)
        return np.array([self._share(as_text(left), right) for left, right in pairs], dtype=np.float32)

    def of_either(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """``[N]``: the mean of both ways."""
        texts = [as_text(context) for context in contexts]
        both: Floats = np.mean([self.of_pairs(texts, candidates), self.of_pairs(candidates, texts)], axis=0)
        return both

    def _share(self, context: str, candidate: str) -> float:
        words = _words(context)
        found = words & _words(candidate)
        return self._weight(found) / self._weight(words) if words else 0.0

    def _weight(self, words: Iterable[str]) -> float:
        """The sum of idf; a word that no text had counts most."""
        return sum(
            math.log(1 + (self._total - self._counts[word] + 0.5) / (self._counts[word] + 0.5))
            for word in words
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(in_pairs(normalize("NFKC", text).lower())))

"""What every model should beat: words that are shared, and vectors of single words."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tercet.errors import InputError
from tercet.extras import require
from tercet.index.lexical import in_pairs
from tercet.models.scorer import Scorer
from tercet.records import Context, Floats, Scores, as_text

K1, B = 1.2, 0.75
WORD = r"(?u)\w+"


class Baseline(Scorer):
    """A scorer without a transformer; some want to see the texts of a task first."""

    kind: str

    def fit(self, texts: Iterable[str]) -> None:
        """Learn how common words are."""

    @abstractmethod
    def _matrix(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        """``[B, C]``"""

    @abstractmethod
    def _rows(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        """``[B]``"""

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        nothing = np.zeros((1, 1), dtype=np.int64)
        return Scores(self._matrix([as_text(each) for each in contexts], candidates), nothing, nothing)

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        return self._rows([as_text(each) for each in contexts], candidates)


class Bm25(Baseline):
    """BM25 (k1 = 1.2, b = 0.75) over words, and over pairs of letters in Korean, Japanese and Chinese."""

    kind = "bm25"

    def __init__(self) -> None:
        text = require("sklearn.feature_extraction.text", extra="evaluate", purpose="BM25")
        self._counter: Any = text.CountVectorizer(preprocessor=_plain, token_pattern=WORD)
        self._idf = np.zeros(0)
        self._mean_length = 1.0

    def fit(self, texts: Iterable[str]) -> None:
        """How many texts hold a word, and how long texts are."""
        counts = _fitted(self._counter, texts)
        holding = np.bincount(counts.indices, minlength=counts.shape[1])
        self._idf = np.log(1 + (counts.shape[0] - holding + 0.5) / (holding + 0.5))
        self._mean_length = float(counts.sum() / counts.shape[0])

    def _weights(self, candidates: Sequence[str]) -> Any:
        """``[C, V]``, sparse: what each word of a candidate is worth."""
        counts = self._counter.transform(candidates).astype(np.float64)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        norm = K1 * (1 - B + B * lengths / self._mean_length)  # [C]
        counts.data *= (K1 + 1) / (counts.data + np.repeat(norm, np.diff(counts.indptr)))
        return counts.multiply(self._idf).tocsr()

    def _matrix(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        words = self._counter.transform(contexts).astype(np.float64)
        return np.asarray((words @ self._weights(candidates).T).todense(), dtype=np.float32)

    def _rows(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        words = self._counter.transform(contexts).astype(np.float64)
        return np.asarray(words.multiply(self._weights(candidates)).sum(axis=1), dtype=np.float32).ravel()


class TfIdf(Baseline):
    """The cosine of tf-idf vectors."""

    kind = "tfidf"

    def __init__(self) -> None:
        text = require("sklearn.feature_extraction.text", extra="evaluate", purpose="tf-idf")
        self._vectors: Any = text.TfidfVectorizer(preprocessor=_plain, token_pattern=WORD)

    def fit(self, texts: Iterable[str]) -> None:
        """How many texts hold a word."""
        _fitted(self._vectors, texts)

    def _matrix(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        left, right = self._vectors.transform(contexts), self._vectors.transform(candidates)
        return np.asarray((left @ right.T).todense(), dtype=np.float32)

    def _rows(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        left, right = self._vectors.transform(contexts), self._vectors.transform(candidates)
        return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float32).ravel()


class WordVectors(Baseline):
    """The cosine of mean word vectors (WordLlama, 256 wide), which come with its package."""

    kind = "wordllama"

    def __init__(self) -> None:
        package: Any = require("wordllama", extra="evaluate", purpose="static word vectors")
        folder = Path(package.__file__).parent  # where its own search does not look
        self._model = package.WordLlama.load(cache_dir=folder, disable_download=True)

    def vectors(self, texts: list[str]) -> Floats:
        """``[N, 256]``, each of length 1."""
        made: Floats = self._model.embed(texts, norm=True)
        return made

    def _matrix(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        matrix: Floats = self.vectors(list(contexts)) @ self.vectors(list(candidates)).T
        return matrix

    def _rows(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        rows: Floats = np.einsum("nd,nd->n", self.vectors(list(contexts)), self.vectors(list(candidates)))
        return rows


BASELINES: dict[str, type[Baseline]] = {each.kind: each for each in (Bm25, TfIdf, WordVectors)}


def _fitted(vectors: Any, texts: Iterable[str]) -> Any:
    try:
        return vectors.fit_transform(list(texts))
    except ValueError as error:
        raise InputError("the texts of this task hold no words to count") from error


def _plain(text: str) -> str:
    return in_pairs(text.lower())

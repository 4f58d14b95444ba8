"""Baselines without a transformer: lexical overlap and static word vectors."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tercet.errors import InputError
from tercet.extras import require
from tercet.records import Context, Floats, Scores, as_text
from tercet.scorers.scorer import Scorer
from tercet.text.cjk import split_cjk

K1, B = 1.2, 0.75
WORD = r"(?u)\w+"


class Baseline(Scorer):
    """A scorer without a transformer; some are fitted to the texts of a task."""

    kind: str

    def fit(self, texts: Iterable[str]) -> None:
        """Learn word frequencies from the texts of a task, if the baseline uses them."""

    @abstractmethod
    def _matrix(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        """``[B, C]``: every context against every candidate."""

    @abstractmethod
    def _rows(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        """``[B]``: each context against the candidate at its position."""

    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        truncated = np.zeros((1, 1), dtype=np.int64)  # a baseline reads texts of any length
        return Scores(
            self._matrix([as_text(context) for context in contexts], candidates), truncated, truncated
        )

    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        return self._rows([as_text(context) for context in contexts], candidates)


class BM25(Baseline):
    """BM25 (k1 = 1.2, b = 0.75) over words; over character bigrams in Korean, Japanese and Chinese."""

    kind = "bm25"

    def __init__(self) -> None:
        text = require("sklearn.feature_extraction.text", extra="evaluate", purpose="BM25")
        self._counter: Any = text.CountVectorizer(preprocessor=_preprocess, token_pattern=WORD)
        self._idf = np.zeros(0)
        self._mean_length = 1.0

    def fit(self, texts: Iterable[str]) -> None:
        """Learn document frequencies and the mean length of the texts."""
        counts = _fit_transform(self._counter, texts)
        frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
        self._idf = np.log(1 + (counts.shape[0] - frequencies + 0.5) / (frequencies + 0.5))
        self._mean_length = float(counts.sum() / counts.shape[0])

    def _weights(self, candidates: Sequence[str]) -> Any:
        """``[C, V]``, sparse: the weight of each word in each candidate."""
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
        self._vectorizer: Any = text.TfidfVectorizer(preprocessor=_preprocess, token_pattern=WORD)

    def fit(self, texts: Iterable[str]) -> None:
        """Learn document frequencies."""
        _fit_transform(self._vectorizer, texts)

    def _matrix(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        left, right = self._vectorizer.transform(contexts), self._vectorizer.transform(candidates)
        return np.asarray((left @ right.T).todense(), dtype=np.float32)

    def _rows(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        left, right = self._vectorizer.transform(contexts), self._vectorizer.transform(candidates)
        return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float32).ravel()


class WordVectors(Baseline):
    """The cosine of mean static word vectors (WordLlama, 256 dimensions)."""

    kind = "wordllama"

    def __init__(self) -> None:
        package: Any = require("wordllama", extra="evaluate", purpose="static word vectors")
        folder = Path(package.__file__).parent  # the package contains the weights but does not look there
        self._model = package.WordLlama.load(cache_dir=folder, disable_download=True)

    def vectors(self, texts: list[str]) -> Floats:
        """``[N, 256]``: a unit vector per text."""
        vectors: Floats = self._model.embed(texts, norm=True)
        return vectors

    def _matrix(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        matrix: Floats = self.vectors(list(contexts)) @ self.vectors(list(candidates)).T
        return matrix

    def _rows(self, contexts: Sequence[str], candidates: Sequence[str]) -> Floats:
        rows: Floats = np.einsum("nd,nd->n", self.vectors(list(contexts)), self.vectors(list(candidates)))
        return rows


BASELINES: dict[str, type[Baseline]] = {baseline.kind: baseline for baseline in (BM25, TfIdf, WordVectors)}


def _fit_transform(vectorizer: Any, texts: Iterable[str]) -> Any:
    try:
        return vectorizer.fit_transform(list(texts))
    except ValueError as error:
        raise InputError("the texts of this task have no words: use a model instead of a baseline") from error


def _preprocess(text: str) -> str:
    return split_cjk(text.lower())

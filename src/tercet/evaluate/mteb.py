"""Scorers under ``mteb``: bi- and poly-encoders as encoders, cross-encoders as rerankers.

``mteb`` expects a model to return arrays, and the similarity of two arrays. A poly-encoder fits this
interface: a query is a matrix of codes, and ``similarity`` is ``match``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.extras import require
from tercet.records import Codes, Floats
from tercet.scorers.cross_scorer import CrossScorer
from tercet.scorers.dual_scorer import DualScorer
from tercet.scorers.loaded import LoadedScorer
from tercet.scorers.text_scorer import TextScorer

QUERY = "query"
Batches = Iterable[Mapping[str, Sequence[str]]]


class MtebEncoder:
    """A bi- or poly-encoder for ``mteb``."""

    def __init__(self, scorer: DualScorer, name: str) -> None:
        scorer.check_asymmetric()
        self.scorer = scorer
        self.mteb_model_meta = _meta(scorer, name, "dense" if scorer.max_codes == 1 else "late-interaction")

    def encode(self, inputs: Batches, *, prompt_type: object = None, **_: object) -> Floats:
        """``[N, D]`` vectors; for the queries of a poly-encoder ``[N, M, D + 1]``.

        The last number of a code is 1, or 0 if the query has fewer codes. Texts that are neither queries nor
        documents, as in similarity tasks, are encoded as candidates.
        """
        texts = _texts(inputs)
        if str(getattr(prompt_type, "value", prompt_type)) != QUERY:
            return self.scorer.encode_candidates(texts)
        codes = self.scorer.encode_contexts(texts)
        if self.scorer.max_codes == 1:
            return codes.vectors[:, 0]
        return np.concatenate([codes.vectors, codes.mask[:, :, None].astype(np.float32)], axis=2)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Floats:
        """``[A, B]``: the scores of all queries against all documents."""
        return self.scorer.match(_codes(embeddings1), _array(embeddings2))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Floats:
        """``[A]``: the score of each query against the document at its position."""
        scores: Floats = self.scorer.match(_codes(embeddings1), _array(embeddings2)[:, None])[:, 0]
        return scores


class MtebReranker:
    """A cross-encoder for ``mteb``."""

    def __init__(self, scorer: CrossScorer, name: str) -> None:
        self.scorer = scorer
        self.mteb_model_meta = _meta(scorer, name, "cross-encoder")

    def predict(self, inputs1: Batches, inputs2: Batches, **_: object) -> Floats:
        """``[N]``: the score of each pair."""
        return self.scorer.score_pairs(_texts(inputs1), _texts(inputs2))


def for_mteb(scorer: LoadedScorer, name: str = "tercet/scorer") -> MtebEncoder | MtebReranker:
    """The scorer as a model for ``mteb.evaluate``.

    Args:
        name: the name of the results, ``organization/model``.
    """
    return MtebReranker(scorer, name) if isinstance(scorer, CrossScorer) else MtebEncoder(scorer, name)


def _meta(scorer: TextScorer, name: str, kind: str) -> Any:
    meta: Any = require("mteb.models.model_meta", extra="mteb", purpose="running under mteb")
    return meta.ModelMeta.create_empty(
        overwrites={
            "name": name,
            "revision": scorer.fingerprint,
            "framework": ["PyTorch"],
            "model_type": [kind],
            "max_tokens": float(scorer.tokenizer.max_tokens),
        }
    )


def _texts(batches: Batches) -> list[str]:
    return [text for batch in batches for text in batch["text"]]


def _array(embeddings: Any) -> NDArray[np.float32]:
    return np.asarray(embeddings, dtype=np.float32)


def _codes(embeddings: Any) -> Codes:
    """The codes in an array that ``encode`` returned."""
    array = _array(embeddings)
    if array.ndim == 3:
        return Codes(array[:, :, :-1], array[:, :, -1] > 0)
    return Codes(array[:, None], np.ones((len(array), 1), dtype=bool))

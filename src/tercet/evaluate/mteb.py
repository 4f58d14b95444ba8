"""tercet's scorers under ``mteb``: bi- and poly-encoders as encoders, cross-encoders as rerankers.

``mteb`` asks a model for arrays and for the similarity of arrays, so a poly-encoder fits as it is: a query is
a matrix of codes, and ``similarity`` is ``match``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.extras import require
from tercet.models.cross import CrossEncoder
from tercet.models.dual import DualEncoder
from tercet.models.load import AnyScorer
from tercet.models.neural import NeuralScorer
from tercet.records import Codes, Floats

QUERY = "query"
Batches = Iterable[Mapping[str, Sequence[str]]]


class MtebEncoder:
    """A bi- or poly-encoder."""

    def __init__(self, scorer: DualEncoder, name: str) -> None:
        scorer.check_one_way()
        self.scorer = scorer
        self.mteb_model_meta = _meta(scorer, name, "dense" if scorer.most_codes == 1 else "late-interaction")

    def encode(self, inputs: Batches, *, prompt_type: object = None, **_: object) -> Floats:
        """``[N, D]``; a poly-encoder's queries are ``[N, M, D + 1]``, 1 at the end where there is a code.

        Texts that are neither query nor document, as in tasks of similarity, are read as candidates.
        """
        texts = _texts(inputs)
        if str(getattr(prompt_type, "value", prompt_type)) != QUERY:
            return self.scorer.encode_candidates(texts)
        codes = self.scorer.encode_contexts(texts)
        if self.scorer.most_codes == 1:
            return codes.vectors[:, 0]
        there = codes.mask[:, :, None].astype(np.float32)
        return np.concatenate([codes.vectors, there], axis=2)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Floats:
        """``[A, B]``"""
        return self.scorer.match(_codes(embeddings1), _array(embeddings2))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Floats:
        """``[A]``"""
        return self.scorer.match_pairs(_codes(embeddings1), _array(embeddings2))


class MtebReranker:
    """A cross-encoder."""

    def __init__(self, scorer: CrossEncoder, name: str) -> None:
        self.scorer = scorer
        self.mteb_model_meta = _meta(scorer, name, "cross-encoder")

    def predict(self, inputs1: Batches, inputs2: Batches, **_: object) -> Floats:
        """``[N]``: the score of each pair."""
        return self.scorer.score_pairs(_texts(inputs1), _texts(inputs2))


def for_mteb(scorer: AnyScorer, name: str = "tercet/scorer") -> MtebEncoder | MtebReranker:
    """The scorer as ``mteb.evaluate`` takes it.

    Args:
        name: what results are filed under, ``organisation/model``.
    """
    return MtebReranker(scorer, name) if isinstance(scorer, CrossEncoder) else MtebEncoder(scorer, name)


def _meta(scorer: NeuralScorer, name: str, kind: str) -> Any:
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


def _array(given: Any) -> NDArray[np.float32]:
    return np.asarray(given, dtype=np.float32)


def _codes(given: Any) -> Codes:
    found = _array(given)
    if found.ndim == 3:
        return Codes(found[:, :, :-1], found[:, :, -1] > 0)
    return Codes(found[:, None], np.ones((len(found), 1), dtype=bool))

"""What other libraries ask of a model: vectors of texts, and an order of texts."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

from tercet.client.sync import Client
from tercet.errors import InputError
from tercet.inputs import check_count
from tercet.records import Floats
from tercet.settings.models import Side

if TYPE_CHECKING:  # with a client, torch is not needed
    from tercet.scorers.scorer import Scorer

LoadedModel: TypeAlias = Union["Scorer", Client]
Model: TypeAlias = LoadedModel | str | PathLike[str]
"""A scorer, the name or path of one, or a client of a server."""


def loaded(model: Model) -> LoadedModel:
    """The scorer or client; a name or path is loaded."""
    if not isinstance(model, (str, PathLike)):
        return model
    from tercet.formats.load import load

    return load(model)


def vectors(model: LoadedModel, texts: Sequence[str], *, side: Side) -> Floats:
    """``[N, D]``: the vector of each text by a bi- or poly-encoder; there may be no texts."""
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    if isinstance(model, Client):
        return model.embed(texts, side=side)
    from tercet.scorers.encode import VectorScorer

    if not isinstance(model, VectorScorer):
        raise InputError(f"a {type(model).__name__} has no vectors: use a bi- or poly-encoder")
    return model.encode(texts, side=side)


def ranking(model: LoadedModel, query: str, texts: Sequence[str], k: int) -> list[tuple[int, float]]:
    """The positions of the ``k`` best texts and their scores, best first; there may be no texts."""
    check_count("k", k)
    if not texts:
        return []
    if isinstance(model, Client):
        reranked = model.rerank(query, texts, top_n=k)
        return [(each.position, each.score) for each in reranked]
    return [(each.position, each.score) for each in model.rank(query, texts, k=k)]

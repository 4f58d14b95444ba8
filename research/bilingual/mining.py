"""Hard negatives of a bi-encoder and of BM25 over word pieces."""

from collections.abc import Iterable

import numpy as np
import torch
from model import DEVICE, Weights
from numpy.typing import NDArray
from pairs import PairSets
from texts import Spans, TokenFile
from torch import Tensor

MAX_DOCUMENTS = 30_000
ROWS = 1024
"""Examples at a time."""
BY_VECTORS, BY_WORDS = 8, 4
"""Negatives of an example."""
DEPTH = 60
"""The negatives by vectors are drawn from this many."""
MARGIN = 0.03
"""A negative scores at least this much lower than the right text."""
QUERY_TOKENS = 64
EXCLUDED = -9.0


@torch.no_grad()
def mine(
    data: PairSets, names: Iterable[str], vectors: Weights, vocabulary: int
) -> dict[str, NDArray[np.int32]]:
    """Rows ``[N, 12]`` of negatives for each of the sets, -1 where there are fewer."""
    rng = np.random.default_rng(0)
    mined = {}
    for name in names:
        count = len(data.left[name])
        documents = np.arange(count)
        if count > MAX_DOCUMENTS:
            documents = np.sort(rng.choice(count, MAX_DOCUMENTS, replace=False))
        left, right = vectors[f"{name}/left"].float(), vectors[f"{name}/right"].float()
        weights = bm25_weights(data.file, data.right[name][documents], vocabulary)
        group, answer = (torch.from_numpy(of[name]).to(DEVICE) for of in (data.group, data.answer))
        places = torch.from_numpy(documents).to(DEVICE)
        parts = []
        for start in range(0, count, ROWS):
            rows = slice(start, start + ROWS)
            cosines = left[rows] @ right[places].T
            own = (left[rows] * right[rows]).sum(dim=-1, keepdim=True)
            same = (answer[rows, None] == answer[places]) | (
                (group[rows, None] == group[places]) & (group[rows, None] >= 0)
            )
            excluded = same | (cosines > own - MARGIN)
            words = torch.sparse.mm(weights, query_counts(data.file, data.left[name][rows], vocabulary)).T
            found = torch.cat([by_vectors(cosines, excluded), by_words(words, excluded)], dim=1)
            parts.append(torch.where(found >= 0, places[found.clamp_min(0)], -1).cpu().numpy())
        mined[name] = np.concatenate(parts).astype(np.int32)
        print(
            f"{name}: {(mined[name] >= 0).mean():.0%} of {mined[name].shape[1]} negatives found", flush=True
        )
    return mined


def by_vectors(cosines: Tensor, excluded: Tensor) -> Tensor:
    """``[B, 8]`` columns at random among the best 60, -1 for excluded ones."""
    best = cosines.masked_fill(excluded, EXCLUDED).topk(min(DEPTH, cosines.shape[1]))
    columns = torch.where(best.values > EXCLUDED + 1, best.indices, -1)
    order = torch.rand(columns.shape, device=columns.device).argsort(dim=1)[:, :BY_VECTORS]
    return columns.gather(1, order)


def by_words(scores: Tensor, excluded: Tensor) -> Tensor:
    """``[B, 4]`` columns with the highest positive scores, -1 for none."""
    best = scores.masked_fill(excluded, EXCLUDED).topk(min(BY_WORDS, scores.shape[1]))
    return torch.where(best.values > 0, best.indices, -1)


def token_rows(file: TokenFile, starts: NDArray, lengths: NDArray) -> tuple[NDArray, NDArray]:
    """The number of its text and the id of each token."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    offsets = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return rows, file.tokens[np.arange(lengths.sum()) + offsets].astype(np.int64)


def bm25_weights(
    file: TokenFile, spans: Spans, vocabulary: int, *, k1: float = 1.2, b: float = 0.75
) -> Tensor:
    """Sparse ``[documents, pieces]``."""
    lengths = (spans[:, 1] - spans[:, 0]).astype(np.int64)
    places = np.stack(token_rows(file, spans[:, 0].astype(np.int64), lengths))
    counts = torch.sparse_coo_tensor(
        torch.from_numpy(places), torch.ones(places.shape[1]), (len(spans), vocabulary)
    ).coalesce()
    (row, piece), frequency = counts.indices(), counts.values()
    documents = torch.bincount(piece, minlength=vocabulary).float()
    rarity = torch.log(1 + (len(spans) - documents + 0.5) / (documents + 0.5))
    length = torch.from_numpy(lengths).float()
    saturation = frequency + k1 * (1 - b + b * length[row] / length.mean())
    values = rarity[piece] * frequency * (k1 + 1) / saturation
    return torch.sparse_coo_tensor(counts.indices(), values, counts.shape).coalesce().to(DEVICE)


def query_counts(file: TokenFile, spans: Spans, vocabulary: int) -> Tensor:
    """``[pieces, B]``: 1 for each piece among the last 64 of a text."""
    lengths = np.minimum(spans[:, 1] - spans[:, 0], QUERY_TOKENS).astype(np.int64)
    rows, ids = token_rows(file, spans[:, 1].astype(np.int64) - lengths, lengths)
    counts = torch.zeros(vocabulary, len(spans), device=DEVICE)
    counts[torch.from_numpy(ids).to(DEVICE), torch.from_numpy(rows).to(DEVICE)] = 1.0
    return counts

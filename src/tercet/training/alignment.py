"""First vectors of new word pieces: means of the known pieces that occur in their translations."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from tercet.records import Floats, Ints

NEIGHBOURS = 4
"""Known pieces of which a first vector is the mean."""
SEEN_ONCE = 1e-6
"""Weight of a piece that occurs with the new one in a single pair: it may be chance."""
NOISE = 0.2
"""Share of a random vector in a first vector, so that equal means become different vectors."""

Texts = Sequence[Sequence[int]]


class Alignment(NamedTuple):
    """For each new piece, ``[P, 4]`` known pieces and their weights, all 0 if it occurs in no pair."""

    pieces: Ints
    weights: Floats


def align(sources: Texts, targets: Texts, *, first_new: int, count: int) -> Alignment:
    """The known pieces whose occurrences in sources fit those of each new piece in targets best.

    Occurrences are compared by the Dice coefficient, 2 · pairs with both / (pairs with one + with the other).

    Args:
        sources: the tokens of each source.
        targets: the tokens of its translation.
        first_new: the id of the first new piece; the others follow.
        count: the number of new pieces.
    """
    known = [np.unique(np.asarray(ids, dtype=np.int64)) for ids in sources]
    totals = np.bincount(np.concatenate([*known, np.empty(0, np.int64)]), minlength=first_new)
    pairs: list[list[int]] = [[] for _ in range(count)]
    for number, ids in enumerate(targets):
        for piece in {each - first_new for each in ids if each >= first_new}:
            pairs[piece].append(number)
    pieces, weights = np.zeros((count, NEIGHBOURS), np.int64), np.zeros((count, NEIGHBOURS), np.float32)
    for new, numbers in enumerate(pairs):
        if not numbers:
            continue
        found, together = np.unique(np.concatenate([known[number] for number in numbers]), return_counts=True)
        dice = 2 * together / (len(numbers) + totals[found])
        dice = np.where(together > 1, dice, SEEN_ONCE)
        best = np.argsort(-dice, kind="stable")[:NEIGHBOURS]
        pieces[new, : len(best)] = found[best]
        weights[new, : len(best)] = dice[best] / dice[best].sum()
    return Alignment(pieces, weights)


def first_vectors(words: Tensor, alignment: Alignment, *, seed: int) -> Tensor:
    """``[P, D]``: a vector for each new piece, as long as those of known words ``[V, D]`` on average.

    A piece without an alignment gets a random vector.
    """
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(alignment.pieces), words.shape[1], generator=generator) * words.std()
    shares = torch.from_numpy(alignment.weights)  # [P, 4]
    means = (words[torch.from_numpy(alignment.pieces)] * shares.unsqueeze(-1)).sum(dim=1)
    aligned = normalize(means, dim=-1) * words.norm(dim=-1).mean() + NOISE * noise
    return torch.where(shares.sum(dim=1, keepdim=True) > 0, aligned, noise)

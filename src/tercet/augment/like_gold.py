"""Of many labelled pairs those whose scores are spread as gold's are (KDE sampling)."""

import numpy as np
from numpy.typing import NDArray

from tercet.errors import DataError
from tercet.extras import require
from tercet.records import Counts

Scores = NDArray[np.float64]

POINTS = 512
"""Where densities are estimated; between them they are a straight line."""

LEAST_RANGE = 1e-6
"""Of gold's: scores closer than that are one."""

LEAST_SHARE = 1e-3
"""Of the highest density: where there is less, a ratio of two densities would say anything."""


def like_gold(pool: Scores, gold: Scores, count: int, *, seed: int = 0) -> Counts:
    """Places of ``count`` scores of the pool, spread as gold's are as far as the pool has enough of each.

    A score is kept with the probability min(1, c f_gold(s) / f_pool(s)), the densities being kernel
    estimates; c is such that ``count`` are kept.
    """
    if count > len(pool):
        raise DataError(
            f"{count} pairs cannot be drawn from a pool of {len(pool)}: raise pool, or ask for fewer"
        )
    if np.ptp(pool) <= LEAST_RANGE * np.ptp(gold):
        raise DataError(
            f"all {len(pool)} pairs of the pool were given nearly the same score, {pool[0]:.3g}: train "
            "the labeller longer, or leave kde out"
        )
    points = np.linspace(min(pool.min(), gold.min()), max(pool.max(), gold.max()), POINTS)
    wanted, there = density(gold, points), density(pool, points)
    weights = np.interp(pool, points, wanted / np.maximum(there, LEAST_SHARE * there.max()))
    return drawn(shares(np.maximum(weights, LEAST_SHARE * weights.max()), count), count, seed=seed)


def shares(weights: Scores, count: int) -> Scores:
    """``[N]``: min(1, c w) for each weight, with the c that makes their sum ``count``."""
    found = np.zeros(len(weights))
    free = np.ones(len(weights), dtype=np.bool_)
    while free.any():
        found[free] = weights[free] * (count - np.count_nonzero(~free)) / weights[free].sum()
        over = free & (found >= 1)
        if not over.any():
            break
        found[over], free[over] = 1.0, False
    return found


def drawn(shares: Scores, count: int, *, seed: int) -> Counts:
    """``count`` places in order, each with the probability of its share (systematic sampling)."""
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(shares))
    ends = np.cumsum(shares[order]) * (count / shares.sum())
    hits = np.searchsorted(ends, np.arange(count) + chance.random(), side="right")
    return np.sort(order[np.minimum(hits, len(order) - 1)])


def density(scores: Scores, points: Scores) -> Scores:
    """A kernel estimate of how scores are spread, at points from the lowest to the highest there are.

    What the kernels put beyond the two ends is folded back: scores end there, often where most of them are.
    """
    if len(np.unique(scores)) < 2:
        raise DataError(
            f"all {len(scores)} scores are {scores[0]:g}: there is no spread to match; use another sampler, "
            "or gold of several scores"
        )
    stats = require("scipy.stats", extra="augment", purpose="matching the spread of gold's scores")
    estimate = stats.gaussian_kde(scores)
    found: Scores = estimate(points) + estimate(2 * points[0] - points) + estimate(2 * points[-1] - points)
    return found


def distance(one: Scores, other: Scores) -> float:
    """How far two spreads are apart: Wasserstein's distance, in units of the score."""
    stats = require("scipy.stats", extra="augment", purpose="comparing how scores are spread")
    return float(stats.wasserstein_distance(one, other))

"""Selecting labelled pairs whose scores are distributed like those of the gold data (KDE sampling)."""

import numpy as np
from numpy.typing import NDArray

from tercet.errors import DataError
from tercet.extras import require
from tercet.records import Ints

Scores = NDArray[np.float64]

POINTS = 512
"""Points at which densities are estimated; they are interpolated between."""

MIN_RANGE = 1e-6
"""Relative to the range of gold scores: scores closer than that are equal."""

MIN_DENSITY = 1e-3
"""Relative to the highest density: below that, a ratio of two densities is meaningless."""


def match_gold_distribution(pool: Scores, gold: Scores, count: int, *, seed: int = 0) -> Ints:
    """Positions of ``count`` scores of the pool, distributed like the gold scores as far as possible.

    A score is kept with the probability min(1, c f_gold(s) / f_pool(s)), where the densities are kernel
    estimates and c is such that ``count`` scores are kept.
    """
    if count > len(pool):
        raise DataError(f"cannot select {count} pairs from a pool of {len(pool)}: raise pool, or lower pairs")
    if np.ptp(pool) <= MIN_RANGE * np.ptp(gold):
        raise DataError(
            f"all {len(pool)} pairs of the pool have nearly the same score, {pool[0]:.3g}: train the "
            "labeller longer, or remove kde"
        )
    points = np.linspace(min(pool.min(), gold.min()), max(pool.max(), gold.max()), POINTS)
    wanted, present = density(gold, points), density(pool, points)
    weights = np.interp(pool, points, wanted / np.maximum(present, MIN_DENSITY * present.max()))
    probabilities = inclusion_probabilities(np.maximum(weights, MIN_DENSITY * weights.max()), count)
    return systematic_sample(probabilities, count, seed=seed)


def inclusion_probabilities(weights: Scores, count: int) -> Scores:
    """``[N]``: min(1, c w) for each weight, with the c for which they sum to ``count``."""
    probabilities = np.zeros(len(weights))
    free = np.ones(len(weights), dtype=np.bool_)
    while free.any():
        probabilities[free] = weights[free] * (count - np.count_nonzero(~free)) / weights[free].sum()
        over = free & (probabilities >= 1)
        if not over.any():
            break
        probabilities[over], free[over] = 1.0, False
    return probabilities


def systematic_sample(probabilities: Scores, count: int, *, seed: int) -> Ints:
    """``count`` positions in order, each included with its probability."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order]) * (count / probabilities.sum())
    hits = np.searchsorted(ends, np.arange(count) + rng.random(), side="right")
    return np.sort(order[np.minimum(hits, len(order) - 1)])


def density(scores: Scores, points: Scores) -> Scores:
    """A kernel density estimate of scores, at points from the lowest to the highest possible score.

    Density beyond the two ends is reflected: scores are bounded, and often concentrated at a bound.
    """
    if len(np.unique(scores)) < 2:
        raise DataError(
            f"all {len(scores)} scores are {scores[0]:g}, so there is no distribution to match: use another "
            "sampler, or gold data with several scores"
        )
    stats = require("scipy.stats", extra="augment", purpose="matching the distribution of scores")
    estimate = stats.gaussian_kde(scores)
    found: Scores = estimate(points) + estimate(2 * points[0] - points) + estimate(2 * points[-1] - points)
    return found


def distance(left: Scores, right: Scores) -> float:
    """The Wasserstein distance of two distributions of scores."""
    stats = require("scipy.stats", extra="augment", purpose="comparing distributions of scores")
    return float(stats.wasserstein_distance(left, right))

"""A file of silver pairs in a few numbers and examples."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.augment.silver import ScoreRange, Silver
from tercet.data.overlap import comparison_key

BANDS, EXAMPLES = 5, 3


@dataclass(frozen=True)
class SilverSummary:
    """The pairs of one sampler."""

    scores: NDArray[np.float64]
    keys: NDArray[np.int64]
    """A number for each pair, independent of the order of its texts."""
    examples: dict[str, list[Silver]]
    """Some pairs of each fifth of the range, highest first."""


def summarize_silver(rows: Iterable[Silver], scores: ScoreRange) -> SilverSummary:
    """The summary of silver pairs, which are read as a stream."""
    found: list[float] = []
    keys: list[int] = []
    bands: list[list[Silver]] = [[] for _ in range(BANDS)]
    counts = [0] * BANDS
    width = (scores.max_score - scores.min_score) / BANDS
    for row in rows:
        found.append(row.score)
        keys.append(hash(frozenset((comparison_key(row.context), comparison_key(row.candidate)))))
        band = min(int((row.score - scores.min_score) / width), BANDS - 1)
        counts[band] += 1
        if len(bands[band]) < EXAMPLES:
            bands[band].append(row)
    examples = {}
    for band in reversed(range(BANDS)):
        low, high = scores.min_score + band * width, scores.min_score + (band + 1) * width
        examples[f"{low:.2g} to {high:.2g} ({counts[band]:,})"] = bands[band]
    return SilverSummary(np.array(found), np.array(keys, dtype=np.int64), examples)


def overlaps(summaries: Mapping[str, SilverSummary]) -> dict[str, dict[str, float]]:
    """The share of each sampler's pairs that each other sampler has found too."""
    return {
        name: {
            other: float(np.isin(own.keys, theirs.keys).mean())
            for other, theirs in summaries.items()
            if other != name
        }
        for name, own in summaries.items()
    }

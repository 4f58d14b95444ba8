"""A file of silver in a few numbers and examples, read once and not held."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.augment.silver import Range, Silver
from tercet.data.overlap import folded

BANDS, EXAMPLES = 5, 3


@dataclass(frozen=True)
class Summary:
    """What there is to say of one sampler's pairs."""

    scores: NDArray[np.float64]
    keys: NDArray[np.int64]
    """A number for each pair, the same whichever text comes first."""
    examples: dict[str, list[Silver]]
    """Some of each fifth of the range, from the highest."""


def summary(rows: Iterable[Silver], scores: Range) -> Summary:
    """The summary of silver."""
    found: list[float] = []
    keys: list[int] = []
    bands: list[list[Silver]] = [[] for _ in range(BANDS)]
    counts = [0] * BANDS
    width = (scores.highest - scores.lowest) / BANDS
    for row in rows:
        found.append(row.score)
        keys.append(hash(frozenset((folded(row.context), folded(row.candidate)))))
        band = min(int((row.score - scores.lowest) / width), BANDS - 1)
        counts[band] += 1
        if len(bands[band]) < EXAMPLES:
            bands[band].append(row)
    named = {}
    for band in reversed(range(BANDS)):
        low, high = scores.lowest + band * width, scores.lowest + (band + 1) * width
        named[f"{low:.2g} to {high:.2g} ({counts[band]:,})"] = bands[band]
    return Summary(np.array(found), np.array(keys, dtype=np.int64), named)


def overlaps(summaries: Mapping[str, Summary]) -> dict[str, dict[str, float]]:
    """Of each sampler's pairs, the share that each other one has made too."""
    return {
        name: {
            other: float(np.isin(own.keys, theirs.keys).mean())
            for other, theirs in summaries.items()
            if other != name
        }
        for name, own in summaries.items()
    }

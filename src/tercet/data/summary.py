"""Statistics of a data set, in one pass and constant memory per distinct text."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tercet.data.overlap import comparison_key, example_key, keys_both_directions
from tercet.records import Context, Example

MAX_BINS = 10
"""Targets with more distinct values than this are counted in this many intervals."""

QUANTILES = {"min": 0.0, "median": 0.5, "90th percentile": 0.9, "max": 1.0}


@dataclass
class TextStatistics:
    """Counts and lengths of the contexts or of the candidates of a data set."""

    count: int = 0
    hashes: set[int] = field(default_factory=set)
    lengths: "array[int]" = field(default_factory=lambda: array("I"))

    def add(self, text: Context) -> None:
        """Count a text; its length is recorded the first time."""
        self.count += 1
        key = hash(comparison_key(text))
        if key not in self.hashes:
            self.hashes.add(key)
            self.lengths.append(len(text) if isinstance(text, str) else sum(map(len, text)))

    def as_dict(self) -> dict[str, int]:
        """The number of texts and of distinct texts, and quantiles of the lengths in characters."""
        ordered = sorted(self.lengths)
        quantiles = {name: ordered[int(share * (len(ordered) - 1))] for name, share in QUANTILES.items()}
        return {"count": self.count, "distinct": len(self.hashes), **quantiles}


class Summary:
    """Statistics that grow with every example.

    Args:
        against: test examples, which should not occur in the data set.
    """

    def __init__(self, against: Iterable[Example] = ()) -> None:
        self.examples = 0
        self.duplicates = 0
        self.shared = 0
        self._contexts, self._candidates = TextStatistics(), TextStatistics()
        self._targets: Counter[float] = Counter()
        self._per_example: Counter[int] = Counter()
        self._seen: set[int] = set()
        self._against = {hash(key) for example in against for key in keys_both_directions(example)}

    def add(self, example: Example) -> None:
        """Count an example."""
        self.examples += 1
        self._contexts.add(example.context)
        for text in example.candidates:
            self._candidates.add(text)
        self._targets.update(example.targets)
        self._per_example[len(example.candidates)] += 1
        key = hash(example_key(example))
        self.duplicates += key in self._seen
        self.shared += key in self._against
        self._seen.add(key)

    def as_dict(self, labels: Sequence[str] = ()) -> dict[str, Any]:
        """All statistics as plain numbers.

        Args:
            labels: the names of targets 0, 1, 2…
        """
        return {
            "examples": self.examples,
            "duplicates": self.duplicates,
            "shared with test": self.shared if self._against else None,
            "contexts": self._contexts.as_dict(),
            "candidates": self._candidates.as_dict(),
            "candidates per example": {
                str(count): times for count, times in sorted(self._per_example.items())
            },
            "targets": histogram(self._targets, labels),
        }


def summarize(
    examples: Iterable[Example], *, against: Iterable[Example] = (), labels: Sequence[str] = ()
) -> dict[str, Any]:
    """The statistics of a data set.

    Args:
        against: test examples, which should not occur in the data set.
        labels: the names of targets 0, 1, 2…
    """
    summary = Summary(against)
    for example in examples:
        summary.add(example)
    return summary.as_dict(labels) if summary.examples else {"examples": 0}


def histogram(values: Counter[float], labels: Sequence[str] = ()) -> dict[str, int]:
    """The count of each label or value; many distinct values are counted in intervals of equal width."""
    if labels:
        return {label: values.get(float(position), 0) for position, label in enumerate(labels)}
    if len(values) <= MAX_BINS:
        return {f"{value:g}": values[value] for value in sorted(values)}
    low, high = min(values), max(values)
    width = high / MAX_BINS - low / MAX_BINS  # high - low may overflow
    counts = [0] * MAX_BINS
    for value, times in values.items():
        counts[min(int(value / width - low / width), MAX_BINS - 1)] += times
    shares = [position / MAX_BINS for position in range(MAX_BINS + 1)]
    edges = [low * (1 - share) + high * share for share in shares]
    return {
        f"{start:g} to {end:g}": count for (start, end), count in zip(pairwise(edges), counts, strict=True)
    }

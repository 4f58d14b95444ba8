"""What is in a data set, before anybody learns from it; read once, in little memory."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tercet.data.overlap import folded, key_of, keys_both_ways
from tercet.records import Context, Lesson

MOST_VALUES = 10
"""Targets with more different values than this are counted in as many intervals."""

SHARES = {"shortest": 0.0, "median": 0.5, "nine in ten up to": 0.9, "longest": 1.0}


@dataclass
class Side:
    """The contexts of a data set, or its candidates."""

    count: int = 0
    different: set[int] = field(default_factory=set)
    characters: "array[int]" = field(default_factory=lambda: array("I"))

    def add(self, text: Context) -> None:
        """Count a text; of those that come again, only the first is measured."""
        self.count += 1
        name = hash(folded(text))
        if name not in self.different:
            self.different.add(name)
            self.characters.append(len(text) if isinstance(text, str) else sum(map(len, text)))

    def described(self) -> dict[str, int]:
        """Counts, and the lengths in characters."""
        ordered = sorted(self.characters)
        lengths = {name: ordered[int(share * (len(ordered) - 1))] for name, share in SHARES.items()}
        return {"count": self.count, "different": len(self.different), **lengths}


class Summary:
    """Counts that grow with every lesson."""

    def __init__(self, against: Iterable[Lesson] = ()) -> None:
        self.lessons = 0
        self.duplicates = 0
        self.shared = 0
        self._contexts, self._candidates = Side(), Side()
        self._targets: Counter[float] = Counter()
        self._per_lesson: Counter[int] = Counter()
        self._seen: set[int] = set()
        self._against = {hash(key) for lesson in against for key in keys_both_ways(lesson)}

    def add(self, lesson: Lesson) -> None:
        """Count a lesson."""
        self.lessons += 1
        self._contexts.add(lesson.context)
        for text in lesson.candidates:
            self._candidates.add(text)
        self._targets.update(lesson.targets)
        self._per_lesson[len(lesson.candidates)] += 1
        key = hash(key_of(lesson))
        self.duplicates += key in self._seen
        self.shared += key in self._against
        self._seen.add(key)

    def described(self, labels: Sequence[str] = ()) -> dict[str, Any]:
        """All of it as plain numbers; targets by their labels, if they have any."""
        return {
            "lessons": self.lessons,
            "duplicates": self.duplicates,
            "shared with test": self.shared if self._against else None,
            "contexts": self._contexts.described(),
            "candidates": self._candidates.described(),
            "candidates of a lesson": {
                str(count): times for count, times in sorted(self._per_lesson.items())
            },
            "targets": histogram(self._targets, labels),
        }


def summarise(
    lessons: Iterable[Lesson], *, against: Iterable[Lesson] = (), labels: Sequence[str] = ()
) -> dict[str, Any]:
    """What is in a data set.

    Args:
        against: test data, which the set should have nothing in common with.
        labels: the names of targets 0, 1, 2...
    """
    summary = Summary(against)
    for lesson in lessons:
        summary.add(lesson)
    return summary.described(labels) if summary.lessons else {"lessons": 0}


def histogram(values: Counter[float], labels: Sequence[str] = ()) -> dict[str, int]:
    """How often each value or, where there are many, each interval comes."""
    if labels:
        return {label: values.get(float(place), 0) for place, label in enumerate(labels)}
    if len(values) <= MOST_VALUES:
        return {f"{value:g}": values[value] for value in sorted(values)}
    low, high = min(values), max(values)
    width = high / MOST_VALUES - low / MOST_VALUES  # their difference might be too large for a float
    counts = [0] * MOST_VALUES
    for value, times in values.items():
        counts[min(int(value / width - low / width), MOST_VALUES - 1)] += times
    edges = [
        low * (1 - place / MOST_VALUES) + high * (place / MOST_VALUES) for place in range(MOST_VALUES + 1)
    ]
    return {
        f"{start:g} to {end:g}": count for (start, end), count in zip(pairwise(edges), counts, strict=True)
    }

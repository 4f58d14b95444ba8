"""Silver: pairs whose scores a cross-encoder gave, each with its origin."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tercet.data.rows import read_rows
from tercet.errors import DataError, InputError
from tercet.models.cross import CrossEncoder
from tercet.records import Floats

PAIRS_AT_ONCE = 4096
"""Labelled together: enough that texts of equal length meet, and little memory."""

Kind = TypeVar("Kind", "NewPair", "Silver")

SLACK = 1e-3
"""How far a score may lie outside 0 to 1 by rounding."""


@dataclass(frozen=True, slots=True)
class NewPair:
    """Two texts that nobody has labelled, and where they come from."""

    context: str
    candidate: str
    sampler: str
    parents: tuple[int, int]
    """Their places among the texts; of changed words twice the place of the gold pair."""


@dataclass(frozen=True, slots=True)
class Silver:
    """A pair with a score that no person gave."""

    context: str
    candidate: str
    score: float
    sampler: str
    parents: tuple[int, int]
    labeller: str
    """The cross-encoder's fingerprint; empty where gold's own score was kept."""
    spread: float = 0.0
    """How far several cross-encoders were apart: the deviation of their scores from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """What scores mean: nothing in common at ``lowest``, the same at ``highest``."""

    lowest: float = 0.0
    highest: float = 1.0

    def from_share(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shares from 0 to 1 as scores."""
        return self.lowest + np.clip(shares, 0.0, 1.0) * (self.highest - self.lowest)


def label(pairs: Iterable[NewPair], labellers: Sequence[CrossEncoder], scores: Range) -> Iterator[Silver]:
    """The pairs with the labellers' mean score, streamed; only so many are held at a time.

    Args:
        labellers: cross-encoders whose scores lie between 0 and 1.
        scores: gold's range, which theirs is brought to.
    """
    if not labellers:
        raise InputError("there is no labeller: give at least one cross-encoder")
    names = " ".join(each.fingerprint for each in labellers)
    waiting = iter(pairs)
    while window := list(islice(waiting, PAIRS_AT_ONCE)):
        given = shares(labellers, [pair.context for pair in window], [pair.candidate for pair in window])
        labels, spreads = scores.from_share(given.mean(axis=0)), given.std(axis=0)
        for pair, value, apart in zip(window, labels.tolist(), spreads.tolist(), strict=True):
            yield Silver(pair.context, pair.candidate, value, pair.sampler, pair.parents, names, apart)


def agreed(rows: Iterable[Silver], most_spread: float) -> Iterator[Silver]:
    """The rows on which the labellers were of one mind."""
    return (row for row in rows if row.spread <= most_spread)


def decided(rows: Iterable[Silver], threshold: float, scores: Range) -> Iterator[Silver]:
    """The rows as matches and others: the highest score from the threshold on, the lowest below it."""
    return (replace(row, score=scores.highest if row.score >= threshold else scores.lowest) for row in rows)


def shares(
    labellers: Sequence[CrossEncoder], contexts: Sequence[str], candidates: Sequence[str]
) -> NDArray[np.float64]:
    """``[L, N]``: the score of each pair by each labeller, from 0 to 1."""
    return np.stack([_share(each.score_pairs(contexts, candidates)) for each in labellers])


def _share(scores: Floats) -> NDArray[np.float64]:
    low, high = float(scores.min(initial=0.0)), float(scores.max(initial=1.0))
    if not np.isfinite(scores).all() or low < -SLACK or high > 1 + SLACK:
        raise InputError(
            f"a labeller's scores must lie between 0 and 1, which is then brought to gold's range, got "
            f"{low:.3g} "
            f'to {high:.3g}: train it with the objective regression and activation = "sigmoid"'
        )
    return scores.astype(np.float64)


def write_pairs(rows: Iterable[NewPair | Silver], file: Path) -> None:
    """Append rows to a file of JSON Lines."""
    with file.open("a", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def read_new_pairs(file: Path) -> Iterator[NewPair]:
    """The rows of a file of pairs, streamed."""
    return _rows(NewPair, file)


def read_silver(file: Path) -> Iterator[Silver]:
    """The rows of a file of silver, streamed."""
    return _rows(Silver, file)


def _rows(kind: type[Kind], file: Path) -> Iterator[Kind]:
    for row in read_rows(file, "jsonl"):
        try:
            made = kind(**{**row.columns, "parents": tuple(row.columns["parents"])})
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{row.where}: this is no row that tercet wrote ({error}): remove the file, and it is "
                "made again"
            ) from None
        yield made

"""Silver data: pairs scored by a cross-encoder, each with its provenance."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tercet.data.rows import read_rows
from tercet.errors import DataError, InputError
from tercet.files.structured import json_text
from tercet.records import Floats
from tercet.scorers.cross import CrossEncoder
from tercet.settings.files import FileConfig

PAIRS_AT_ONCE = 4096
"""Pairs that are labelled together: enough for batches of equal length, in little memory."""

Kind = TypeVar("Kind", "NewPair", "Silver")

TOLERANCE = 1e-3
"""How far rounding may move a score outside 0 to 1."""


@dataclass(frozen=True, slots=True)
class NewPair:
    """Two texts without a label, and where they come from."""

    context: str
    candidate: str
    sampler: str
    parents: tuple[int, int]
    """The positions of the texts; for given pairs and changed words, twice the position of the pair."""


@dataclass(frozen=True, slots=True)
class Silver:
    """A pair with a score that was not assigned by a person."""

    context: str
    candidate: str
    score: float
    sampler: str
    parents: tuple[int, int]
    labeller: str
    """The fingerprint of the cross-encoder; empty if the gold score was kept."""
    disagreement: float = 0.0
    """The standard deviation of several cross-encoders' scores from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class ScoreRange:
    """The range of scores: ``min_score`` for unrelated texts, ``max_score`` for equivalent ones."""

    min_score: float = 0.0
    max_score: float = 1.0

    def from_unit(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers from 0 to 1 scaled to this range."""
        return self.min_score + np.clip(shares, 0.0, 1.0) * (self.max_score - self.min_score)


def label(
    pairs: Iterable[NewPair], labellers: Sequence[CrossEncoder], scores: ScoreRange
) -> Iterator[Silver]:
    """The pairs with the labellers' mean score, as a stream.

    Args:
        labellers: cross-encoders with scores from 0 to 1.
        scores: the range of the gold scores, to which labels are scaled.
    """
    if not labellers:
        raise InputError("labelling needs at least one cross-encoder")
    names = " ".join(each.fingerprint for each in labellers)
    waiting = iter(pairs)
    while window := list(islice(waiting, PAIRS_AT_ONCE)):
        given = unit_scores(labellers, [pair.context for pair in window], [pair.candidate for pair in window])
        labels, deviations = scores.from_unit(given.mean(axis=0)), given.std(axis=0)
        for pair, value, deviation in zip(window, labels.tolist(), deviations.tolist(), strict=True):
            yield Silver(pair.context, pair.candidate, value, pair.sampler, pair.parents, names, deviation)


def with_agreement(rows: Iterable[Silver], max_disagreement: float) -> Iterator[Silver]:
    """The rows on which the labellers agree."""
    return (row for row in rows if row.disagreement <= max_disagreement)


def binarize(rows: Iterable[Silver], threshold: float, scores: ScoreRange) -> Iterator[Silver]:
    """The rows with the highest score from the threshold on, and the lowest below it."""
    return (
        replace(row, score=scores.max_score if row.score >= threshold else scores.min_score) for row in rows
    )


def unit_scores(
    labellers: Sequence[CrossEncoder], contexts: Sequence[str], candidates: Sequence[str]
) -> NDArray[np.float64]:
    """``[L, N]``: the score of each pair by each labeller, from 0 to 1."""
    return np.stack([_checked(each.score_pairs(contexts, candidates)) for each in labellers])


def _checked(scores: Floats) -> NDArray[np.float64]:
    low, high = float(scores.min(initial=0.0)), float(scores.max(initial=1.0))
    if not np.isfinite(scores).all() or low < -TOLERANCE or high > 1 + TOLERANCE:
        raise InputError(
            f"a labeller's scores must be from 0 to 1, got {low:.3g} to {high:.3g}: train it with the "
            "objective "
            'bce and activation = "sigmoid"'
        )
    return scores.astype(np.float64)


def write_pairs(rows: Iterable[NewPair | Silver], file: Path) -> None:
    """Append rows to a JSON Lines file."""
    with file.open("a", encoding="utf-8") as out:
        for row in rows:
            out.write(json_text(asdict(row)) + "\n")


def read_new_pairs(file: Path) -> Iterator[NewPair]:
    """The rows of a file of new pairs, as a stream."""
    return _rows(NewPair, file)


def read_silver(file: Path) -> Iterator[Silver]:
    """The rows of a file of silver pairs, as a stream."""
    return _rows(Silver, file)


def _rows(kind: type[Kind], file: Path) -> Iterator[Kind]:
    for row in read_rows(file, FileConfig(format="jsonl")):
        try:
            parsed = kind(**{**row.columns, "parents": tuple(row.columns["parents"])})
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{row.location}: tercet did not write this row ({error}): remove the file, and it is "
                "created again"
            ) from None
        yield parsed

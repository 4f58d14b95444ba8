"""The error of a labeller's scores, compared with gold scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.augment.gold import scores_of
from tercet.augment.silver import ScoreRange, unit_scores
from tercet.records import Example, as_text
from tercet.scorers.calibration import best_f1
from tercet.scorers.cross import CrossEncoder


def gold_matches(gold: NDArray[np.float64], match_from: float | None) -> NDArray[np.bool_] | None:
    """Which gold pairs are matches; None if they are graded and nothing says from which score on."""
    if match_from is not None:
        return gold >= match_from
    return gold == gold.max() if len(np.unique(gold)) == 2 else None


@dataclass(frozen=True)
class LabelNoise:
    """Labels compared with gold scores of pairs that the labeller was not trained on."""

    mean_error: float
    """Mean absolute error, in units of the score."""
    correlation: float
    """Pearson's r."""
    threshold: float | None = None
    """The score from which a pair is a match: the one given, or the one with the best F1."""
    wrong: float | None = None
    """If gold data has matches: the share of pairs on the wrong side of the threshold."""


def label_noise(
    labellers: Sequence[CrossEncoder],
    held_out: Sequence[Example],
    scores: ScoreRange,
    *,
    threshold: float | None = None,
    match_from: float | None = None,
) -> LabelNoise:
    """The noise of the labellers' mean score on held-out gold pairs.

    Args:
        threshold: the score from which a label is a match. Default: the one with the best F1.
        match_from: the lowest gold score of a match. Default: if there are two gold scores, the higher one.
    """
    contexts = [as_text(example.context) for example in held_out]
    candidates = [example.candidates[0] for example in held_out]
    labels = scores.from_unit(unit_scores(labellers, contexts, candidates).mean(axis=0))
    gold = scores_of(held_out)
    # the correlation of constant labels is undefined
    correlation = float(np.corrcoef(labels, gold)[0, 1]) if np.ptp(labels) > 0 else 0.0
    wrong = None
    matches = gold_matches(gold, match_from)
    if matches is not None:
        threshold = best_f1(labels, matches)[0] if threshold is None else threshold
        wrong = float(np.mean((labels >= threshold) != matches))
    return LabelNoise(float(np.abs(labels - gold).mean()), correlation, threshold, wrong)

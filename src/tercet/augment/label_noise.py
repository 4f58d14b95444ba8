"""The error of a labeller's scores, compared with gold scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.augment.gold import scores_of
from tercet.augment.silver import ScoreRange, unit_scores
from tercet.records import Example, as_text
from tercet.scorers.calibration import best_f1
from tercet.scorers.cross import CrossEncoder


@dataclass(frozen=True)
class LabelNoise:
    """Labels compared with gold scores of pairs that the labeller was not trained on."""

    mean_error: float
    """Mean absolute error, in units of the score."""
    correlation: float
    """Pearson's r."""
    threshold: float | None = None
    """For binary gold data: the score with the best F1."""
    wrong: float | None = None
    """For binary gold data: the share of pairs on the wrong side of the threshold."""


def label_noise(
    labellers: Sequence[CrossEncoder], held_out: Sequence[Example], scores: ScoreRange
) -> LabelNoise:
    """The noise of the labellers' mean score on held-out gold pairs."""
    contexts = [as_text(example.context) for example in held_out]
    candidates = [example.candidates[0] for example in held_out]
    labels = scores.from_unit(unit_scores(labellers, contexts, candidates).mean(axis=0))
    gold = scores_of(held_out)
    # the correlation of constant labels is undefined
    correlation = float(np.corrcoef(labels, gold)[0, 1]) if np.ptp(labels) > 0 else 0.0
    threshold = wrong = None
    if len(np.unique(gold)) == 2:
        matches = gold == gold.max()
        threshold, _ = best_f1(labels, matches)
        wrong = float(np.mean((labels >= threshold) != matches))
    return LabelNoise(float(np.abs(labels - gold).mean()), correlation, threshold, wrong)

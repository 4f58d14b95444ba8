"""How far a labeller is from people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.augment.gold import targets
from tercet.augment.silver import Range, shares
from tercet.calibration import best_f1
from tercet.models.cross import CrossEncoder
from tercet.records import Lesson, as_text


@dataclass(frozen=True)
class Noise:
    """Labels against what people said of pairs that the labeller has not learnt."""

    mean_error: float
    """In units of the score."""
    correlation: float
    threshold: float | None = None
    """Of matches and others: the score with the best F1, ..."""
    wrong: float | None = None
    """... and the share of pairs on the wrong side of it."""


def label_noise(labellers: Sequence[CrossEncoder], held_out: Sequence[Lesson], scores: Range) -> Noise:
    """What labels are worth, on gold that was held out."""
    contexts = [as_text(lesson.context) for lesson in held_out]
    candidates = [lesson.candidates[0] for lesson in held_out]
    given = scores.from_share(shares(labellers, contexts, candidates).mean(axis=0))
    said = targets(held_out)
    # a labeller that says the same of everything correlates with nothing
    correlation = float(np.corrcoef(given, said)[0, 1]) if np.ptp(given) > 0 else 0.0
    threshold = wrong = None
    if len(np.unique(said)) == 2:  # matches and others
        matches = said == said.max()
        threshold, _ = best_f1(given, matches)
        wrong = float(np.mean((given >= threshold) != matches))
    return Noise(float(np.abs(given - said).mean()), correlation, threshold, wrong)

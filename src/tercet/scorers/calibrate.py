"""``tercet.calibrate``: fit probabilities and a threshold to labelled pairs."""

from collections.abc import Iterable

from tercet.errors import InputError
from tercet.records import Pair
from tercet.scorers.calibration import Calibration, fit_calibration
from tercet.scorers.scorer import Scorer
from tercet.settings.calibration import Method


def calibrate(scorer: Scorer, pairs: Iterable[Pair], *, method: Method = "platt") -> Calibration:
    """Fit a calibration to labelled pairs; the scorer keeps it and saves it.

    Args:
        pairs: with the score 1 for a match and 0 for no match. Do not use training pairs.
        method: ``"platt"``, a logistic curve, or ``"isotonic"``, any monotonic curve, for many pairs.
    """
    labelled = list(pairs)
    for position, pair in enumerate(labelled):
        if not isinstance(pair, Pair):
            raise InputError(
                f"pair {position} must be a tercet.Pair(context, candidate, label), got {type(pair).__name__}"
            )
    if not labelled:
        raise InputError("there are no pairs: calibration needs matches and non-matches")
    scores = scorer.score_pairs([pair.context for pair in labelled], [pair.candidate for pair in labelled])
    scorer.calibration = fit_calibration(scores, [pair.score for pair in labelled], method)
    return scorer.calibration

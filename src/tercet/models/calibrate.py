"""``tercet.calibrate``: labelled pairs to probabilities."""

from collections.abc import Iterable

from tercet.calibration import Calibration, Method, fit_calibration
from tercet.errors import InputError
from tercet.models.scorer import Scorer
from tercet.records import Pair


def calibrate(scorer: Scorer, pairs: Iterable[Pair], *, method: Method = "platt") -> Calibration:
    """Fit probabilities and a threshold to labelled pairs; the scorer keeps the result, and saves it.

    Args:
        pairs: the score of each is 1 for a match and 0 for none; they should not be the training pairs.
        method: ``"platt"``, a logistic curve, or ``"isotonic"``, any rising one, for many pairs.
    """
    labelled = list(pairs)
    for position, pair in enumerate(labelled):
        if not isinstance(pair, Pair):
            raise InputError(
                f"pair {position} must be a tercet.Pair(context, candidate, label), got {type(pair).__name__}"
            )
    if not labelled:
        raise InputError("there are no pairs: a calibration needs matches and others")
    scores = scorer.score_pairs([pair.context for pair in labelled], [pair.candidate for pair in labelled])
    scorer.calibration = fit_calibration(scores, [pair.score for pair in labelled], method)
    return scorer.calibration

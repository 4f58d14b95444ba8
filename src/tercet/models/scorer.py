"""One interface for every scorer: ``score`` and ``rank`` go through the same ``scores``."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from tercet.calibration import Calibration
from tercet.errors import InputError
from tercet.inputs import check_candidates, check_context, check_contexts, check_pairs, check_top
from tercet.records import Context, Counts, Flags, Floats, Ranked, Scores


class Scorer(ABC):
    """Scores contexts against candidates; higher is better. Threads may share one."""

    calibration: Calibration | None = None
    """What ``tercet.calibrate`` learnt; probabilities and decisions need it."""

    @abstractmethod
    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        """Every context against every candidate, all of them checked."""

    @abstractmethod
    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """``[B]``: each context against the candidate at its position, all of them checked."""

    def score(self, context: Context, candidates: Iterable[str]) -> Floats:
        """``[C]``: the score of each candidate."""
        row: Floats = self._scores([check_context(context)], check_candidates(candidates)).values[0]
        return row

    def score_many(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B, C]``: every context against every candidate."""
        return self.scores(contexts, candidates).values

    def score_pairs(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B]``: each context against the candidate at its position."""
        return self._pair_scores(*check_pairs(contexts, candidates))

    def scores(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Scores:
        """Every context against every candidate, with the count of tokens that were not read."""
        return self._scores(check_contexts(contexts), check_candidates(candidates))

    def probability(self, context: Context, candidates: Iterable[str]) -> Floats:
        """``[C]``: how likely each candidate is a match, as calibrated."""
        return self._calibrated().probabilities(self.score(context, candidates))

    def probability_pairs(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B]``: how likely each context and the candidate at its position match, as calibrated."""
        return self._calibrated().probabilities(self.score_pairs(contexts, candidates))

    def decide_pairs(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Flags:
        """``[B]``: whether each pair is a match, by the threshold that had the best F1."""
        return self._calibrated().matches(self.score_pairs(contexts, candidates))

    def rank(self, context: Context, candidates: Iterable[str], k: int = 10) -> list[Ranked]:
        """The ``k`` best candidates, best first; equal scores keep their order."""
        k, texts = check_top(k), check_candidates(candidates)
        return rankings(self._scores([check_context(context)], texts), texts, k)[0]

    def rank_many(
        self, contexts: Iterable[Context], candidates: Iterable[str], k: int = 10
    ) -> list[list[Ranked]]:
        """A ranking for each context."""
        k, texts = check_top(k), check_candidates(candidates)
        return rankings(self._scores(check_contexts(contexts), texts), texts, k)

    def _calibrated(self) -> Calibration:
        if self.calibration is None:
            raise InputError(
                "this scorer has no probabilities yet: fit them with tercet.calibrate(scorer, labelled pairs)"
            )
        return self.calibration


def best(values: Floats, k: int) -> Counts:
    """Positions of the ``k`` largest values, largest first; equal values keep their order."""
    if k >= len(values):
        return np.argsort(-values, kind="stable")
    threshold = np.partition(values, len(values) - k)[len(values) - k]
    among = np.flatnonzero(values >= threshold)
    return among[np.argsort(-values[among], kind="stable")[:k]]


def rankings(scores: Scores, candidates: Sequence[str], k: int) -> list[list[Ranked]]:
    """The ``k`` best candidates for each context, best first."""
    context_cuts = np.broadcast_to(scores.context_cuts, scores.values.shape)
    candidate_cuts = np.broadcast_to(scores.candidate_cuts, scores.values.shape)
    return [
        [
            Ranked(
                position=int(position),
                score=float(values[position]),
                candidate=candidates[position],
                context_cut=int(context_cuts[row, position]),
                candidate_cut=int(candidate_cuts[row, position]),
            )
            for position in best(values, k)
        ]
        for row, values in enumerate(scores.values)
    ]

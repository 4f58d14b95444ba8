"""The interface of all scorers."""

from abc import ABC, abstractmethod
from asyncio import to_thread
from collections.abc import Iterable, Sequence

import numpy as np

from tercet.arrays import top_k
from tercet.errors import InputError
from tercet.inputs import check_candidates, check_context, check_contexts, check_k, check_pairs, check_text
from tercet.records import Bools, Context, Explanation, Floats, Ranked, Scores, as_text
from tercet.scorers.calibration import Calibration
from tercet.scorers.finite import finite_scores
from tercet.scorers.leave_one_out import PairScores, ScoredPair, explain_by_leaving_out


class Scorer(ABC):
    """Scores contexts against candidates; higher is better. Threads may share a scorer.

    The coroutines (``ascore``, ``arank``, ...) run the method without the ``a`` in another thread, so the
    event loop stays responsive. If one is cancelled, its thread still finishes, and the result is discarded.
    """

    calibration: Calibration | None = None
    """Set by ``tercet.calibrate``; probabilities and decisions need it."""

    @abstractmethod
    def _scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        """Every context against every candidate; the arguments are checked."""

    @abstractmethod
    def _pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """``[B]``: each context against the candidate at its position; the arguments are checked."""

    def score(self, context: Context, candidates: Iterable[str]) -> Floats:
        """``[C]``: the score of each candidate."""
        row: Floats = self._finite_scores([check_context(context)], check_candidates(candidates)).values[0]
        return row

    def score_many(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B, C]``: the scores of every context against every candidate."""
        return self.scores(contexts, candidates).values

    def score_pairs(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B]``: the score of each context and the candidate at its position."""
        return self._finite_pair_scores(*check_pairs(contexts, candidates))

    def scores(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Scores:
        """As ``score_many``, with the number of truncated tokens."""
        return self._finite_scores(check_contexts(contexts), check_candidates(candidates))

    def probability(self, context: Context, candidates: Iterable[str]) -> Floats:
        """``[C]``: the calibrated probability that each candidate is a match."""
        return self._calibrated().probabilities(self.score(context, candidates))

    def probability_pairs(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """``[B]``: the calibrated probability that each context and the candidate at its position match."""
        return self._calibrated().probabilities(self.score_pairs(contexts, candidates))

    def decide_pairs(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Bools:
        """``[B]``: whether each pair is a match, by the calibrated threshold."""
        return self._calibrated().matches(self.score_pairs(contexts, candidates))

    def rank(self, context: Context, candidates: Iterable[str], k: int = 10) -> list[Ranked]:
        """The ``k`` best candidates, best first; ties keep their order."""
        k, texts = check_k(k), check_candidates(candidates)
        return _rankings(self._finite_scores([check_context(context)], texts), texts, k)[0]

    def rank_many(
        self, contexts: Iterable[Context], candidates: Iterable[str], k: int = 10
    ) -> list[list[Ranked]]:
        """The ``k`` best candidates for each context."""
        k, texts = check_k(k), check_candidates(candidates)
        return _rankings(self._finite_scores(check_contexts(contexts), texts), texts, k)

    def explain(
        self,
        context: Context,
        candidate: str,
        *,
        leave_one_out: bool = False,
        pair_scores: PairScores | None = None,
    ) -> Explanation:
        """How the words of a context and of a candidate contribute to their score.

        A poly-encoder and most bi-encoders are explained exactly, by their tokens. Other scorers are
        explained approximately, by leaving each word out. ``method`` of the explanation says which.

        Args:
            leave_one_out: leave words out even if the scorer has an exact explanation.
            pair_scores: scores the texts without words. Default: this scorer; a server uses its queue.
        """
        context, candidate = check_context(context), check_text(candidate, "candidate")
        exact = None if leave_one_out else self._explain_exactly(context, candidate)
        if exact is not None:
            return exact
        pair = self._scored_pair(context, candidate)
        return explain_by_leaving_out(pair, pair_scores or self._finite_pair_scores)

    def encode(self, texts: Iterable[Context]) -> Floats:
        """``[N, D]``: the vector of each text; only dual encoders (bi and poly) have vectors."""
        raise InputError(f"a {type(self).__name__} has no vectors: use a bi- or poly-encoder")

    async def ascore(self, context: Context, candidates: Iterable[str]) -> Floats:
        """As ``score``, in another thread."""
        return await to_thread(self.score, context, candidates)

    async def ascore_many(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """As ``score_many``, in another thread."""
        return await to_thread(self.score_many, contexts, candidates)

    async def ascore_pairs(self, contexts: Iterable[Context], candidates: Iterable[str]) -> Floats:
        """As ``score_pairs``, in another thread."""
        return await to_thread(self.score_pairs, contexts, candidates)

    async def arank(self, context: Context, candidates: Iterable[str], k: int = 10) -> list[Ranked]:
        """As ``rank``, in another thread."""
        return await to_thread(self.rank, context, candidates, k)

    async def arank_many(
        self, contexts: Iterable[Context], candidates: Iterable[str], k: int = 10
    ) -> list[list[Ranked]]:
        """As ``rank_many``, in another thread."""
        return await to_thread(self.rank_many, contexts, candidates, k)

    async def aencode(self, texts: Iterable[Context]) -> Floats:
        """As ``encode``, in another thread."""
        return await to_thread(self.encode, texts)

    def _finite_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Scores:
        """``_scores``, if they are finite: every public method uses them in this form."""
        scores = self._scores(contexts, candidates)
        finite_scores(scores.values)
        return scores

    def _finite_pair_scores(self, contexts: Sequence[Context], candidates: Sequence[str]) -> Floats:
        """``_pair_scores``, if they are finite."""
        return finite_scores(self._pair_scores(contexts, candidates))

    def _explain_exactly(self, context: Context, candidate: str) -> Explanation | None:
        """The contributions of tokens, which add up to the score; None if the scorer has no such formula."""
        return None

    def _scored_pair(self, context: Context, candidate: str) -> ScoredPair:
        """The pair as this scorer reads it: here, everything is read."""
        text = as_text(context)
        return ScoredPair(
            context=context,
            candidate=candidate,
            score=float(self._finite_pair_scores([context], [candidate])[0]),
            separator="\n",
            context_span=(0, len(text)),
            candidate_span=(0, len(candidate)),
            context_truncated=0,
            candidate_truncated=0,
        )

    def _calibrated(self) -> Calibration:
        if self.calibration is None:
            raise InputError(
                "this scorer is not calibrated: call tercet.calibrate(scorer, labelled_pairs), or run "
                '"tercet calibrate MODEL --data FILE"'
            )
        return self.calibration


def _rankings(scores: Scores, candidates: Sequence[str], k: int) -> list[list[Ranked]]:
    context_truncated = np.broadcast_to(scores.context_truncated, scores.values.shape)
    candidate_truncated = np.broadcast_to(scores.candidate_truncated, scores.values.shape)
    return [
        [
            Ranked(
                position=int(position),
                score=float(values[position]),
                text=candidates[position],
                context_truncated=int(context_truncated[row, position]),
                candidate_truncated=int(candidate_truncated[row, position]),
            )
            for position in top_k(values, k)
        ]
        for row, values in enumerate(scores.values)
    ]

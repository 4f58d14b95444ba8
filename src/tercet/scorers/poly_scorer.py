"""What a poly-encoder is in every runtime."""

from tercet.scorers.dual_scorer import DualScorer
from tercet.settings.models import PolyConfig


class PolyScorer(DualScorer):
    """Each candidate attends over the codes of the context; candidates can still be cached."""

    kind = "poly"
    config: PolyConfig

    @property
    def max_codes(self) -> int:
        """M, the largest number of codes of a context."""
        if self.config.code_kind == "learnt":
            return self.config.codes
        more = 1 if self.config.code_kind == "last_and_first" else 0
        return min(self.config.codes + more, self.tokenizer.max_tokens)

    @property
    def is_siamese(self) -> bool:
        """False: contexts have codes."""
        return False

    @property
    def scores_are_cosines(self) -> bool:
        """Whether codes and candidates are normalized."""
        return self.config.similarity == "cosine"

    @property
    def is_symmetric(self) -> bool:
        """Whether a score is the mean of both directions."""
        return self.config.symmetric

"""Distillation: bi- and poly-encoders learn the scores of a teacher."""

from torch import Tensor

from tercet.errors import InputError
from tercet.scorers.dual import DualEncoder
from tercet.training import dev_metrics, losses
from tercet.training.objectives.base import Batch, DualObjective, contexts_of
from tercet.training.targets import Targets


class Distillation(DualObjective):
    """An objective over a teacher's scores of each candidate, the right one first."""

    targets = Targets.TEACHER
    measure = staticmethod(dev_metrics.ranking)

    def scores(self, scorer: DualEncoder, batch: Batch) -> tuple[Tensor, Tensor]:
        """``[B, K]`` each: the student's scores and the teacher's."""
        counts = {len(example.candidates) for example in batch}
        if len(counts) > 1:
            raise InputError(
                f"distillation needs equally many candidates in every row of a batch, got {sorted(counts)}"
            )
        candidates = [ids for example in batch for ids in example.candidates]
        codes, vectors = self.encode(scorer, contexts_of(batch), candidates)
        scores = scorer.match_tensors(codes, vectors.unflatten(0, (len(batch), -1)))
        if scorer.is_symmetric:
            back, own = self.encode(scorer, candidates, contexts_of(batch))
            rows = own.repeat_interleave(scores.shape[1], dim=0).unsqueeze(1)
            scores = (scores + scorer.match_tensors(back, rows).view_as(scores)) / 2
        teacher = scores.new_tensor([example.targets for example in batch])
        return self.score_scale * scores, teacher


class MarginMse(Distillation):
    """Margins between the right candidate and the others as large as the teacher's."""

    def _default_scale(self, scorer: DualEncoder) -> float:
        """1: the teacher's scores, not a softmax, set the size of the margins."""
        return 1.0

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        return losses.margin_mse(*self.scores(scorer, batch))


class KlDivergence(Distillation):
    """The teacher's softmax distribution over the candidates."""

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        return losses.kl_divergence(*self.scores(scorer, batch), temperature=self.config.temperature)

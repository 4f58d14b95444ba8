"""Objectives of Sentence-BERT (Reimers & Gurevych, 2019) and CoSENT, for bi-encoders."""

from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from tercet.scorers.dual import DualEncoder
from tercet.scorers.pair_classifier import PairClassifier, concatenate
from tercet.settings.training import ObjectiveConfig
from tercet.training import dev_metrics, losses
from tercet.training.objectives.base import Batch, BiObjective, scaled_targets, targets_of
from tercet.training.targets import Targets


class Softmax(BiObjective):
    """A softmax classifier over the concatenated vectors of a pair (Sentence-BERT on NLI)."""

    targets = Targets.LABELS
    measure = staticmethod(dev_metrics.label_accuracy)

    def __init__(
        self, config: ObjectiveConfig, scorer: DualEncoder, *, mini_batch_tokens: int | None = None
    ) -> None:
        super().__init__(config, scorer, mini_batch_tokens=mini_batch_tokens)
        self.classifier = nn.Linear(len(config.concatenation) * scorer.width, config.num_labels, bias=False)

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        left, right = self.vectors(scorer, batch)
        logits = self.classifier(concatenate(left, right, self.config.concatenation))
        return losses.classification(logits, targets_of(batch, left).long())

    def pair_classifier(self, labels: tuple[str, ...]) -> PairClassifier:
        """The classifier as it is now, which the bi-encoder keeps."""
        weights = self.classifier.weight.detach().float().cpu().numpy().copy()
        names = labels if len(labels) == len(weights) else ()
        return PairClassifier(weights, self.config.concatenation, names)


class Cosine(BiObjective):
    """Mean squared error between cosines and scores scaled to 0 to 1 (Sentence-BERT on STSb)."""

    targets = Targets.SCORES
    measure = staticmethod(dev_metrics.correlation)

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        left, right = self.vectors(scorer, batch)
        return losses.mean_squared_error(
            cosine_similarity(left, right), scaled_targets(batch, left, self.config)
        )


class CoSent(BiObjective):
    """Orders cosines like the scores; only the order counts (CoSENT)."""

    targets = Targets.SCORES
    measure = staticmethod(dev_metrics.correlation)

    def _default_scale(self, scorer: DualEncoder) -> float:
        """The scale of cosines: the loss compares these for every bi-encoder."""
        return self.cosine_scale

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        left, right = self.vectors(scorer, batch)
        cosines = self.score_scale * cosine_similarity(left, right)
        return losses.cosent(cosines, targets_of(batch, left))


class Triplet(BiObjective):
    """Positives closer than negatives, by a margin (Sentence-BERT on Wikipedia sections)."""

    targets = Targets.ANSWERS
    min_candidates = 2
    measure = staticmethod(dev_metrics.ranking)

    def forward(self, scorer: DualEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        anchors, positives, negatives = self.vectors(scorer, batch, candidates=2)
        return losses.triplet(
            anchors, positives, negatives, margin=self.config.margin, distance=self.config.distance
        )

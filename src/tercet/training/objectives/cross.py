"""Objectives of cross-encoders."""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

from tercet.encoders.packing import to_device
from tercet.errors import InputError
from tercet.records import Example
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.heads import activate
from tercet.settings.training import BatchConfig
from tercet.training import dev_metrics, losses
from tercet.training.objectives.base import Batch, CrossObjective, scaled_targets, targets_of
from tercet.training.targets import Targets


class Bce(CrossObjective):
    """Binary cross-entropy between one output and scores scaled to 0 to 1."""

    targets = Targets.SCORES
    measure = staticmethod(dev_metrics.correlation)

    def forward(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        outputs = self.outputs(scorer, batch)[:, 0]
        return losses.binary_cross_entropy(outputs, scaled_targets(batch, outputs, self.config))


class Mse(CrossObjective):
    """Mean squared error between the model's scores and scores scaled to 0 to 1."""

    targets = Targets.SCORES
    measure = staticmethod(dev_metrics.correlation)

    def forward(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        scores = activate(self.outputs(scorer, batch), scorer.config.activation)[:, 0]
        return losses.mean_squared_error(scores, scaled_targets(batch, scores, self.config))


class CrossEntropy(CrossObjective):
    """Cross-entropy over classes, with one output per class."""

    targets = Targets.LABELS
    measure = staticmethod(dev_metrics.label_accuracy)

    def forward(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        outputs = self.outputs(scorer, batch)
        return losses.classification(outputs, targets_of(batch, outputs).long())


class Listwise(CrossObjective):
    """Softmax over the candidates of a row, the first of which is right; rows may differ in length."""

    targets = Targets.ANSWERS
    uses_negatives = True
    measure = staticmethod(dev_metrics.ranking)

    def forward(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """The loss of a batch."""
        outputs = self.outputs(scorer, batch)[:, 0]
        counts = torch.tensor([len(example.candidates) for example in batch])
        present = to_device(torch.arange(int(counts.max())) < counts.unsqueeze(1), outputs.device)  # [B, K]
        scores = outputs.new_zeros(present.shape).masked_scatter(present, outputs)
        answers = torch.zeros(len(batch), dtype=torch.long, device=outputs.device)
        return losses.listwise(scores, answers, ~present)

    def chance_loss(self, scorer: CrossEncoder, batch: Batch) -> float:
        """The mean of log C over rows of C candidates."""
        return sum(log(len(example.candidates)) for example in batch) / len(batch)

    def check_batches(self, examples: Sequence[Example], batches: BatchConfig) -> None:
        """Raise if a row has no negative."""
        super().check_batches(examples, batches)
        if batches.negatives == 0 and min(len(example.candidates) for example in examples) == 1:
            raise InputError(
                "listwise needs negatives, and some rows have none: add random ones, for example negatives "
                "= 15"
            )

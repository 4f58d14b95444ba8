"""What every objective declares and does.

An objective turns a batch into a loss with the scorer that it is handed; it never owns the scorer. It
declares which scorers it trains, which targets and candidates its data needs, and how models are measured.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from math import log
from typing import ClassVar, Generic, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from tercet.errors import InputError
from tercet.records import Example
from tercet.scorers.codes import CodeTensors
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.dual import DualEncoder
from tercet.scorers.kinds import AnyScorer
from tercet.scorers.pair_classifier import PairClassifier
from tercet.settings.models import ScorerKind
from tercet.settings.training import BatchConfig, ObjectiveConfig
from tercet.training.dev_metrics import Measured
from tercet.training.gradient_cache import both_sides, pair_outputs
from tercet.training.targets import (
    Targets,
    check_answers,
    check_labels,
    check_scores,
    check_teacher_scores,
    check_translations,
)
from tercet.training.tokenized import Ids, TokenizedExample

Batch: TypeAlias = Sequence[TokenizedExample]
Trained = TypeVar("Trained", bound=DualEncoder | CrossEncoder)


class Objective(nn.Module, ABC, Generic[Trained]):
    """A loss over batches. Some objectives have weights, which the scorer can keep as a classifier."""

    trains: ClassVar[tuple[ScorerKind, ...]]
    """The kinds of scorer it can train."""
    targets: ClassVar[Targets]
    """What it learns from."""
    min_candidates: ClassVar[int] = 1
    """Candidates that every example needs."""
    uses_negatives: ClassVar[bool] = False
    """Whether random negatives can be added to the examples."""
    distinct_answers: ClassVar[bool] = False
    """Whether a repeated answer within a batch would be its own negative."""

    def __init__(
        self, config: ObjectiveConfig, scorer: Trained, *, mini_batch_tokens: int | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.mini_batch_tokens = mini_batch_tokens

    @abstractmethod
    def forward(self, scorer: Trained, batch: Batch) -> Tensor:
        """The loss of a batch."""

    @staticmethod
    @abstractmethod
    def measure(scorer: AnyScorer, examples: Sequence[Example]) -> Measured:
        """The metrics of a scorer on dev or test data."""

    def chance_loss(self, scorer: Trained, batch: Batch) -> float | None:
        """The loss of equal scores for everything; None if that loss says nothing about learning."""
        return log(self.num_labels(scorer)) if self.targets is Targets.LABELS else None

    def pair_classifier(self, labels: tuple[str, ...]) -> PairClassifier | None:
        """What a bi-encoder keeps of the objective to classify pairs; None if it learns no classes.

        Args:
            labels: the names of the labels, in the order of their numbers.
        """
        return None

    def num_labels(self, scorer: Trained) -> int:
        """The number of labels, for objectives that learn from labels."""
        return self.config.num_labels

    def check_examples(self, examples: Sequence[Example], scorer: Trained) -> None:
        """Raise unless every example has what the objective needs; the error names the row."""
        checks: dict[Targets, Callable[[Sequence[Example]], None]] = {
            Targets.ANSWERS: partial(check_answers, min_candidates=self.min_candidates),
            Targets.SCORES: partial(
                check_scores, min_score=self.config.min_score, max_score=self.config.max_score
            ),
            Targets.LABELS: partial(check_labels, num_labels=self.num_labels(scorer)),
            Targets.TEACHER: check_teacher_scores,
            Targets.VECTORS: check_translations,
        }
        checks[self.targets](examples)

    def check_batches(self, examples: Sequence[Example], batches: BatchConfig) -> None:
        """Raise if the batch settings do not suit the objective."""
        if batches.negatives and not self.uses_negatives:
            raise InputError(
                f"{self.config.kind} cannot use random negatives, which have no score or label: set "
                "negatives to 0"
            )


class DualObjective(Objective[DualEncoder]):
    """An objective for bi- and poly-encoders."""

    trains: ClassVar[tuple[ScorerKind, ...]] = ("bi", "poly")
    cosine_scale: ClassVar[float] = 20.0
    """The default of ``score_scale`` for cosines: a softmax of numbers from -1 to 1 is too flat."""

    def __init__(
        self, config: ObjectiveConfig, scorer: DualEncoder, *, mini_batch_tokens: int | None = None
    ) -> None:
        super().__init__(config, scorer, mini_batch_tokens=mini_batch_tokens)
        self.score_scale = self._default_scale(scorer) if config.score_scale is None else config.score_scale

    def _default_scale(self, scorer: DualEncoder) -> float:
        """The scale that makes scores ``cosine_scale`` times a cosine; dot products are not scaled."""
        return self.cosine_scale / scorer.score_scale if scorer.scores_are_cosines else 1.0

    def encode(
        self, scorer: DualEncoder, contexts: Sequence[Ids], candidates: Sequence[Ids]
    ) -> tuple[CodeTensors, Tensor]:
        """The codes of contexts, and the vectors of candidates, ``[C, D]``."""
        return both_sides(scorer, contexts, candidates, mini_batch_tokens=self.mini_batch_tokens)


class BiObjective(DualObjective):
    """An objective for bi-encoders, which have one vector per text."""

    trains: ClassVar[tuple[ScorerKind, ...]] = ("bi",)

    def vectors(self, scorer: DualEncoder, batch: Batch, *, candidates: int = 1) -> list[Tensor]:
        """``[B, D]`` each: the vectors of the contexts, of their first candidates, of their second..."""
        texts = [example.candidates[number] for number in range(candidates) for example in batch]
        codes, vectors = self.encode(scorer, contexts_of(batch), texts)
        return [codes.vectors[:, 0], *vectors.split(len(batch))]


class CrossObjective(Objective[CrossEncoder]):
    """An objective for cross-encoders."""

    trains: ClassVar[tuple[ScorerKind, ...]] = ("cross",)

    def outputs(self, scorer: CrossEncoder, batch: Batch) -> Tensor:
        """``[N, k]``: the outputs of every context with each of its candidates, row by row."""
        pairs = [
            scorer.pair_tokenizer.pair(example.context, ids)
            for example in batch
            for ids in example.candidates
        ]
        return pair_outputs(scorer, pairs, mini_batch_tokens=self.mini_batch_tokens)

    def num_labels(self, scorer: CrossEncoder) -> int:
        """The number of the cross-encoder's outputs."""
        return scorer.config.num_labels


def contexts_of(batch: Batch) -> list[Ids]:
    """The contexts of a batch."""
    return [example.context for example in batch]


def targets_of(batch: Batch, like: Tensor) -> Tensor:
    """``[B]``: the single target of each example, on the device of ``like``."""
    return torch.tensor([example.targets[0] for example in batch], dtype=torch.float32, device=like.device)


def scaled_targets(batch: Batch, like: Tensor, config: ObjectiveConfig) -> Tensor:
    """``[B]``: the targets scaled from the range of the data to 0 to 1."""
    return (targets_of(batch, like) - config.min_score) / (config.max_score - config.min_score)

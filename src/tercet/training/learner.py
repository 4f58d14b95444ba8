"""What a trainer moves: a module that turns a batch into a loss."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn
from torch.utils.data import Dataset

from tercet.models.load import AnyScorer
from tercet.training.batches import LengthBatches
from tercet.training.examples import Example, Examples, different_answers
from tercet.training.objectives import CrossObjective, DualObjective
from tercet.training.settings import BatchSettings

ROWS_NAMED = 8


class Batches(Protocol):
    """Batches of keys into a data set, another order in every epoch."""

    def __iter__(self) -> Iterator[list[Any]]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Material:
    """What is learnt from, and what is looked at on the way."""

    data: Dataset[Any]
    batches: Batches
    collate: Callable[[list[Any]], dict[str, Any]]
    dev: Sequence[dict[str, Any]]
    """Batches, collated."""


class Learner(nn.Module):
    """A scorer and its objective as one module."""

    def __init__(self, scorer: AnyScorer, objective: DualObjective | CrossObjective) -> None:
        super().__init__()
        self.scorer = scorer
        self.objective = objective

    def forward(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """The loss of a batch."""
        return {"loss": self.objective(self.scorer, examples)}

    def rows(self, examples: Sequence[Example]) -> str:
        """Where the examples of a batch come from."""
        known = [example.where for example in examples if example.where]
        more = len(known) - ROWS_NAMED
        return "; ".join(known[:ROWS_NAMED]) + (f" and {more} more" if more > 0 else "") or "of this batch"


def material(
    learner: Learner, batching: BatchSettings, *, train: Sequence[Example], dev: Sequence[Example]
) -> Material:
    """Examples in batches, as the learner's objective needs them."""
    distinct = learner.objective.distinct_answers
    learnt = Examples(train, negatives=batching.negatives, seed=batching.seed)
    choices = all(len(example.candidates) > 1 for example in dev)  # which need no others
    drawn = 0 if choices else min(batching.negatives, max(different_answers(dev) - 1, 0))
    looked_at = Examples(dev, negatives=drawn, seed=batching.seed)
    return Material(
        data=learnt,
        batches=LengthBatches(train, batching, distinct_answers=distinct),
        collate=lambda examples: {"examples": examples},
        dev=[
            {"examples": [looked_at[place] for place in batch]}
            for batch in LengthBatches(dev, batching, distinct_answers=distinct)
        ],
    )

"""What a trainer moves: a module that turns a batch into a loss."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn
from torch.utils.data import Dataset

from tercet.errors import InputError
from tercet.models.cross import CrossEncoder
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
        return rows_of(examples)


def rows_of(examples: Sequence[Example]) -> str:
    """Where examples come from: each file once, then its lines."""
    lines: dict[str, list[str]] = {}
    for example in examples[:ROWS_NAMED]:
        file, _, line = example.where.rpartition(", ")
        lines.setdefault(file, []).append(line)
    named = "; ".join(", ".join([file, *each]) for file, each in lines.items() if any(each))
    more = f" and {len(examples) - ROWS_NAMED} more" if len(examples) > ROWS_NAMED else ""
    return f"{named}{more}" if named else "of this batch"


def material(
    learner: Learner, batching: BatchSettings, *, train: Sequence[Example], dev: Sequence[Example]
) -> Material:
    """Examples in batches, as the learner's objective needs them."""
    needs_others = learner.objective.distinct_answers
    cost = _cost(learner.scorer, train, drawn=batching.negatives)
    batches = LengthBatches(train, batching, distinct_answers=needs_others, cost=cost)
    learnt = Examples(train, negatives=batching.negatives, seed=batching.seed, clock=batches)
    choices = all(len(example.candidates) > 1 for example in dev)  # which need no others
    drawn = 0 if choices else min(batching.negatives, max(different_answers(dev) - 1, 0))
    looked_at = Examples(dev, negatives=drawn, seed=batching.seed)
    made = [[looked_at[place] for place in batch] for batch in look_batches(dev, batching.examples)]
    if needs_others:
        if batches.left_out >= batching.examples:
            warnings.warn(
                f"{batches.left_out} of {len(train)} examples share their answer with so many others that "
                "they find no batch in an epoch",
                stacklevel=2,
            )
        _check_company([[train[place] for place in batch] for batch in batches], drawn=batching.negatives)
        _check_company(made, drawn=drawn, what="the dev data is too small: one row has no other beside it")
    return Material(
        data=learnt,
        batches=batches,
        collate=lambda examples: {"examples": examples},
        dev=[{"examples": batch} for batch in made],
    )


def look_batches(examples: Sequence[Example], size: int) -> list[list[int]]:
    """All positions, longest first, in batches; one that would be left alone joins the batch before it."""
    order = sorted(range(len(examples)), key=lambda place: -examples[place].tokens)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    if size > 1 and len(batches) > 1 and len(batches[-1]) == 1:
        alone = batches.pop()
        batches[-1] += alone
    return batches


def _cost(scorer: AnyScorer, examples: Sequence[Example], *, drawn: int) -> Callable[[Example], int]:
    """How many tokens are read for an example: a cross-encoder reads the context again for each candidate."""
    lengths = [len(example.candidates[0]) for example in examples]
    typical = round(sum(lengths) / max(len(lengths), 1))
    again = isinstance(scorer, CrossEncoder)

    def cost(example: Example) -> int:
        contexts = len(example.candidates) + drawn if again else 1
        return contexts * len(example.context) + sum(map(len, example.candidates)) + drawn * typical

    return cost


def _check_company(
    batches: Sequence[Sequence[Example]],
    *,
    drawn: int,
    what: str = "a batch of one row has no negatives: raise tokens, or set it to nothing",
) -> None:
    """Raise if an answer would be the only candidate of its batch."""
    if any(len(batch) == 1 and len(batch[0].candidates) == 1 and not drawn for batch in batches):
        raise InputError(what)

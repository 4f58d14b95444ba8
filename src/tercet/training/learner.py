"""The module that a trainer optimizes, and its data."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn
from torch.utils.data import Dataset

from tercet.errors import InputError
from tercet.scorers.cross import CrossEncoder
from tercet.scorers.kinds import AnyScorer
from tercet.settings.training import BatchConfig
from tercet.training.batches import LengthBatches
from tercet.training.objectives import Objective
from tercet.training.tokenized import ExampleDataset, TokenizedExample, count_answers

ROWS_NAMED = 8


class Batches(Protocol):
    """Batches of keys into a data set, in a different order in every epoch."""

    def __iter__(self) -> Iterator[list[Any]]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The training data in batches, and the dev data."""

    data: Dataset[Any]
    batches: Batches
    collate: Callable[[list[Any]], dict[str, Any]]
    dev: Sequence[dict[str, Any]]
    """Collated batches."""


class Learner(nn.Module):
    """A scorer and its objective as one module."""

    def __init__(self, scorer: AnyScorer, objective: Objective[Any]) -> None:
        super().__init__()
        self.scorer = scorer
        self.objective = objective

    def forward(self, examples: Sequence[TokenizedExample]) -> dict[str, Tensor]:
        """The loss of a batch."""
        return {"loss": self.objective(self.scorer, examples)}

    def locations(self, examples: Sequence[TokenizedExample]) -> str:
        """The rows that the examples of a batch come from."""
        return locations_of(examples)


def locations_of(examples: Sequence[TokenizedExample]) -> str:
    """The rows that examples come from: each file once, then its lines."""
    lines: dict[str, list[str]] = {}
    for example in examples[:ROWS_NAMED]:
        file, _, line = example.location.rpartition(", ")
        lines.setdefault(file, []).append(line)
    named = "; ".join(", ".join([file, *each]) for file, each in lines.items() if any(each))
    more = f" and {len(examples) - ROWS_NAMED} more" if len(examples) > ROWS_NAMED else ""
    return f"{named}{more}" if named else "of this batch"


def make_training_data(
    learner: Learner,
    config: BatchConfig,
    *,
    train: Sequence[TokenizedExample],
    dev: Sequence[TokenizedExample],
) -> TrainingData:
    """Examples in batches, as the learner's objective needs them."""
    in_batch = learner.objective.distinct_answers
    cost = _cost(learner.scorer, train, negatives=config.negatives)
    batches = LengthBatches(train, config, distinct_answers=in_batch, cost=cost)
    train_set = ExampleDataset(train, negatives=config.negatives, seed=config.seed, clock=batches)
    given = all(len(example.candidates) > 1 for example in dev)  # candidates that need no others
    dev_negatives = 0 if given else min(config.negatives, max(count_answers(dev) - 1, 0))
    dev_set = ExampleDataset(dev, negatives=dev_negatives, seed=config.seed)
    dev_batches = [
        [dev_set[position] for position in batch] for batch in eval_batches(dev, config.batch_size)
    ]
    if in_batch:
        if batches.left_out >= config.batch_size:
            warnings.warn(
                f"{batches.left_out} of {len(train)} examples are skipped in each epoch, because too many "
                "examples have the same answer",
                stacklevel=2,
            )
        _check_negatives(
            [[train[position] for position in batch] for batch in batches],
            drawn=config.negatives,
            error="a batch of one row has no in-batch negatives: raise or remove batches.max_tokens"
            if config.max_tokens
            else "in-batch negatives are answers of other rows, and all training rows have the same answer",
        )
        _check_negatives(
            dev_batches, drawn=dev_negatives, error="dev data of one row has no in-batch negatives: add rows"
        )
    return TrainingData(
        data=train_set,
        batches=batches,
        collate=lambda examples: {"examples": examples},
        dev=[{"examples": batch} for batch in dev_batches],
    )


def eval_batches(examples: Sequence[TokenizedExample], size: int) -> list[list[int]]:
    """All positions in batches, longest first; a single remaining example joins the batch before it."""
    order = sorted(range(len(examples)), key=lambda position: -examples[position].tokens)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    if size > 1 and len(batches) > 1 and len(batches[-1]) == 1:
        alone = batches.pop()
        batches[-1] += alone
    return batches


def _cost(
    scorer: AnyScorer, examples: Sequence[TokenizedExample], *, negatives: int
) -> Callable[[TokenizedExample], int]:
    """The tokens of an example; a cross-encoder encodes the context again for each candidate."""
    lengths = [len(example.candidates[0]) for example in examples]
    typical = round(sum(lengths) / max(len(lengths), 1))
    repeats = isinstance(scorer, CrossEncoder)

    def cost(example: TokenizedExample) -> int:
        contexts = len(example.candidates) + negatives if repeats else 1
        return contexts * len(example.context) + sum(map(len, example.candidates)) + negatives * typical

    return cost


def _check_negatives(batches: Sequence[Sequence[TokenizedExample]], *, drawn: int, error: str) -> None:
    """Raise if an answer would be the only candidate of its batch."""
    if any(len(batch) == 1 and len(batch[0].candidates) == 1 and not drawn for batch in batches):
        raise InputError(error)

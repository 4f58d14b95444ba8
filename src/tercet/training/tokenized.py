"""Training examples as token ids."""

import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from torch.utils.data import Dataset

from tercet.records import Example
from tercet.scorers.kinds import AnyScorer
from tercet.training.negatives import check_enough, draw_negatives

Ids: TypeAlias = Sequence[int]

INT32 = "i"


@dataclass(frozen=True, slots=True)
class TokenizedExample:
    """An example as token ids."""

    context: Ids
    candidates: tuple[Ids, ...]
    targets: Sequence[float]
    location: str = ""

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return len(self.context) + sum(map(len, self.candidates))


class EpochSource(Protocol):
    """The current epoch. accelerate calls ``set_epoch`` reliably only on batch samplers."""

    epoch: int


class ExampleDataset(Dataset[TokenizedExample]):
    """Examples for torch, with random negatives that are drawn anew in every epoch."""

    def __init__(
        self,
        examples: Sequence[TokenizedExample],
        *,
        negatives: int = 0,
        seed: int = 0,
        clock: "EpochSource | None" = None,
    ) -> None:
        self.examples = examples
        self.negatives = negatives
        self._clock = clock
        self._seed = seed
        answers = {tuple(example.candidates[0]): example.candidates[0] for example in examples}
        self._answers = list(answers.values())
        check_enough(self._answers, negatives)

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, position: int) -> TokenizedExample:
        example = self.examples[position]
        if not self.negatives:
            return example
        epoch = 0 if self._clock is None else self._clock.epoch
        rng = random.Random(f"{self._seed} {epoch} {position}")
        others = draw_negatives(self._answers, example.candidates, self.negatives, rng)
        return replace(example, candidates=(*example.candidates, *others))


def count_answers(examples: Sequence[TokenizedExample]) -> int:
    """The number of different answers."""
    return len({tuple(example.candidates[0]) for example in examples})


def tokenize(scorer: AnyScorer, examples: Iterable[Example]) -> list[TokenizedExample]:
    """The examples tokenized for ``scorer``; repeated texts are tokenized and stored once."""
    examples = list(examples)
    contexts = list(dict.fromkeys(example.context for example in examples))
    candidates = list(dict.fromkeys(text for example in examples for text in example.candidates))
    left = dict(zip(contexts, map(compact, scorer.token_ids(contexts, "context")), strict=True))
    right = dict(zip(candidates, map(compact, scorer.token_ids(candidates, "candidate")), strict=True))
    return [
        TokenizedExample(
            context=left[example.context],
            candidates=tuple(right[text] for text in example.candidates),
            targets=example.targets,
            location=example.location,
        )
        for example in examples
    ]


def compact(ids: list[int]) -> Ids:
    """The ids in a tenth of the memory."""
    return array(INT32, ids)

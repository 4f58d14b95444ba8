"""What a model learns from: token ids, made once, and what should come out."""

import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from torch.utils.data import Dataset

from tercet.errors import InputError
from tercet.models.load import AnyScorer
from tercet.records import Lesson

Ids: TypeAlias = Sequence[int]

FOUR_BYTES = "i"


@dataclass(frozen=True, slots=True)
class Example:
    """A lesson as token ids."""

    context: Ids
    candidates: tuple[Ids, ...]
    targets: tuple[float, ...]
    where: str = ""

    @property
    def tokens(self) -> int:
        """How long it is."""
        return len(self.context) + sum(map(len, self.candidates))


class Clock(Protocol):
    """What knows the epoch; accelerate tells batches reliably, and data sets only sometimes."""

    epoch: int


class Examples(Dataset[Example]):
    """Examples as torch wants them, each with answers of others beside its own, drawn anew in every epoch."""

    def __init__(
        self,
        examples: Sequence[Example],
        *,
        negatives: int = 0,
        seed: int = 0,
        clock: "Clock | None" = None,
    ) -> None:
        self.examples = examples
        self.negatives = negatives
        self._clock = clock
        self._seed = seed
        answers = {tuple(example.candidates[0]): example.candidates[0] for example in examples}
        self._answers = list(answers.values())
        if negatives and len(self._answers) <= negatives:
            raise InputError(
                f"{negatives} negatives cannot be drawn from {len(self._answers)} different answers: "
                "ask for fewer"
            )

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, place: int) -> Example:
        example = self.examples[place]
        if not self.negatives:
            return example
        epoch = 0 if self._clock is None else self._clock.epoch
        chance = random.Random(f"{self._seed} {epoch} {place}")
        own = {tuple(ids) for ids in example.candidates}
        drawn = chance.sample(self._answers, self.negatives + 1)
        others = [ids for ids in drawn if tuple(ids) not in own][: self.negatives]
        return replace(example, candidates=(*example.candidates, *others))


def different_answers(examples: Sequence[Example]) -> int:
    """How many different answers there are."""
    return len({tuple(example.candidates[0]) for example in examples})


def tokenise(scorer: AnyScorer, lessons: Iterable[Lesson]) -> list[Example]:
    """The lessons as ``scorer`` reads them; a text that comes again is tokenised once and kept once."""
    lessons = list(lessons)
    contexts = list(dict.fromkeys(lesson.context for lesson in lessons))
    candidates = list(dict.fromkeys(text for lesson in lessons for text in lesson.candidates))
    left = dict(zip(contexts, map(packed, scorer.token_ids(contexts, "context")), strict=True))
    right = dict(zip(candidates, map(packed, scorer.token_ids(candidates, "candidate")), strict=True))
    return [
        Example(
            context=left[lesson.context],
            candidates=tuple(right[text] for text in lesson.candidates),
            targets=lesson.targets,
            where=lesson.where,
        )
        for lesson in lessons
    ]


def packed(ids: list[int]) -> Ids:
    """The same in a tenth of the memory."""
    return array(FOUR_BYTES, ids)

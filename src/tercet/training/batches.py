"""Which examples are learnt from together: seeded, of about equal length, no answer twice."""

import random
from collections.abc import Callable, Iterator, Sequence

from torch.utils.data import Sampler

from tercet.training.examples import Example
from tercet.training.settings import BatchSettings


class LengthBatches(Sampler[list[int]]):
    """Batches of positions, another order in every epoch, the same for the same seed.

    The examples are shuffled, cut into buckets of many batches, and sorted by length within a bucket, so that
    a batch needs little padding and is still random. Where the answers of a batch are each other's negatives,
    an example whose answer is there already waits for the next batch. Every batch is full, of examples or of
    tokens; what does not fill one at the end of an epoch is left out of it, and other examples in the next.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        settings: BatchSettings,
        *,
        distinct_answers: bool,
        cost: Callable[[Example], int] = lambda example: example.tokens,
    ) -> None:
        self.epoch = 0
        self._examples = examples
        self._settings = settings
        self._distinct = distinct_answers
        self._costs = [cost(example) for example in examples]
        self._count = len(self._make(0))
        self._made: tuple[int, list[list[int]]] = (-1, [])

    @property
    def left_out(self) -> int:
        """How many examples are in no batch of the first epoch."""
        return len(self._examples) - sum(map(len, self._make(0)))

    @property
    def sampler(self) -> "LengthBatches":
        """Itself: where several processes share the batches, accelerate looks here for ``set_epoch``."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches())

    def _batches(self) -> list[list[int]]:
        """Those of the epoch, as many as in the first: what is more is left out, what is missing comes again.

        A trainer counts steps by the first epoch, and would resume at the wrong place.
        """
        if self._made[0] != self.epoch:
            made = self._make(self.epoch)
            self._made = self.epoch, [*made, *made[: self._count - len(made)]][: self._count]
        return self._made[1]

    def _make(self, epoch: int) -> list[list[int]]:
        chance = random.Random(f"{self._settings.seed} {epoch}")
        size = min(self._settings.examples, len(self._examples))
        if size == 0:
            return []
        whole = len(self._examples) if self._settings.tokens else len(self._examples) // size * size
        # cut before they are sorted: otherwise it would always be the shortest that are left out
        order = chance.sample(range(len(self._examples)), whole)
        in_bucket = size * self._settings.bucket_batches
        batches: list[list[int]] = []
        waiting: list[int] = []
        for start in range(0, len(order), in_bucket):
            bucket = waiting + order[start : start + in_bucket]
            bucket.sort(key=lambda position: -self._costs[position])
            full, waiting = self._fill(bucket, size)
            waiting = waiting[:in_bucket]  # more that share their answer would find no place
            batches += full
        if waiting and self._settings.tokens is not None and not self._distinct:
            batches.append(waiting)  # batches differ in number anyway, and these are the shortest
        chance.shuffle(batches)
        return batches

    def _fill(self, bucket: list[int], size: int) -> tuple[list[list[int]], list[int]]:
        """Full batches, and the positions that are left."""
        batches: list[list[int]] = []
        while True:
            batch, left = self._take(bucket, size)
            if not batch:
                return batches, bucket
            batches.append(batch)
            bucket = left

    def _take(self, bucket: list[int], size: int) -> tuple[list[int], list[int]]:
        """The first positions that fill a batch, and all others in their order; nothing if they do not."""
        batch: list[int] = []
        passed: list[int] = []
        answers: set[tuple[int, ...]] = set()
        room = self._settings.tokens
        for place, position in enumerate(bucket):
            example = self._examples[position]
            if room is not None and batch and self._costs[position] > room:
                return batch, passed + bucket[place:]
            if self._distinct:
                answer = tuple(example.candidates[0])
                if answer in answers:
                    passed.append(position)
                    continue
                answers.add(answer)
            batch.append(position)
            if room is not None:
                room -= self._costs[position]
            if len(batch) == size:
                return batch, passed + bucket[place + 1 :]
        return [], bucket

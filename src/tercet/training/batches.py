"""Training batches: seeded, of similar length, without repeated answers."""

import random
from collections.abc import Callable, Iterator, Sequence

from torch.utils.data import Sampler

from tercet.settings.training import BatchConfig
from tercet.training.tokenized import TokenizedExample


class LengthBatches(Sampler[list[int]]):
    """Batches of positions, in a different order in every epoch, reproducible by the seed.

    The examples are shuffled, divided into buckets of many batches, and sorted by length within a bucket, so
    that a batch is random and needs little padding. With in-batch negatives, an example whose answer is
    already in the batch waits for the next one. Every batch is full, in examples or in tokens. Examples that
    do not fill a batch at the end of an epoch are left out; the next epoch leaves out others.
    """

    def __init__(
        self,
        examples: Sequence[TokenizedExample],
        config: BatchConfig,
        *,
        distinct_answers: bool,
        cost: Callable[[TokenizedExample], int] = lambda example: example.tokens,
    ) -> None:
        self.epoch = 0
        self._examples = examples
        self._config = config
        self._distinct = distinct_answers
        self._costs = [cost(example) for example in examples]
        self._count = len(self._make(0))
        self._cached: tuple[int, list[list[int]]] = (-1, [])

    @property
    def left_out(self) -> int:
        """The number of examples that are in no batch of the first epoch."""
        return len(self._examples) - sum(map(len, self._make(0)))

    @property
    def sampler(self) -> "LengthBatches":
        """This object: with several processes, accelerate looks here for ``set_epoch``."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._batches())

    def _batches(self) -> list[list[int]]:
        """The batches of the epoch, as many as in the first: surplus is dropped, missing ones are repeated.

        The trainer counts steps by the first epoch and would otherwise resume at the wrong batch.
        """
        if self._cached[0] != self.epoch:
            batches = self._make(self.epoch)
            self._cached = self.epoch, [*batches, *batches[: self._count - len(batches)]][: self._count]
        return self._cached[1]

    def _make(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"{self._config.seed} {epoch}")
        size = min(self._config.batch_size, len(self._examples))
        if size == 0:
            return []
        whole = len(self._examples) if self._config.max_tokens else len(self._examples) // size * size
        # drop examples before sorting: otherwise the shortest would always be left out
        order = rng.sample(range(len(self._examples)), whole)
        in_bucket = size * self._config.bucket_batches
        batches: list[list[int]] = []
        waiting: list[int] = []
        for start in range(0, len(order), in_bucket):
            bucket = waiting + order[start : start + in_bucket]
            bucket.sort(key=lambda position: -self._costs[position])
            full, waiting = self._fill(bucket, size)
            waiting = waiting[:in_bucket]  # more examples that share their answer would never fit
            batches += full
        if waiting and self._config.max_tokens is not None and not self._distinct:
            batches.append(waiting)  # the number of batches varies anyway, and these are the shortest
        rng.shuffle(batches)
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
        """The first positions that fill a batch, and the others in order; an empty batch if none is full."""
        batch: list[int] = []
        passed: list[int] = []
        answers: set[tuple[int, ...]] = set()
        room = self._config.max_tokens
        for number, position in enumerate(bucket):
            example = self._examples[position]
            if room is not None and batch and self._costs[position] > room:
                return batch, passed + bucket[number:]
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
                return batch, passed + bucket[number + 1 :]
        return [], bucket

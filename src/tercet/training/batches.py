"""Training batches: seeded, of similar length, without repeated answers."""

import random
from collections.abc import Callable, Iterator, Sequence

from torch.utils.data import Sampler

from tercet.settings.training import BatchConfig
from tercet.training.distinct_batches import buckets, distinct_batches, most_batches
from tercet.training.tokenized import TokenizedExample


class LengthBatches(Sampler[list[int]]):
    """Batches of positions, in a different order in every epoch, reproducible by the seed.

    The examples are shuffled, divided into buckets of many batches, and sorted by length within a bucket, so
    that a batch is random and needs little padding. Every batch is full, in examples or in tokens. With
    in-batch negatives, no batch contains an answer twice, and there are as many full batches as possible.
    Examples that are in no batch of an epoch are random, so the next epoch leaves out others.
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
        self._config = config
        self._costs = [cost(example) for example in examples]
        self._answers = _answer_numbers(examples)
        different = len(set(self._answers))
        self._in_batch = distinct_answers
        self._repeats = distinct_answers and different < len(examples)
        self._size = min(config.batch_size, different if distinct_answers else len(examples))
        self._most = most_batches(self._answers, self._size) if self._repeats else 0
        self._count = len(self._make(0))
        self._cached: tuple[int, list[list[int]]] = (-1, [])

    @property
    def left_out(self) -> int:
        """The number of examples that are in no batch of the first epoch."""
        return len(self._costs) - sum(map(len, self._make(0)))

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
        """The batches of the epoch, as many as in the first.

        The trainer counts steps by the first epoch and would otherwise resume at the wrong batch. The number
        varies only with ``max_tokens``: surplus batches are dropped, and missing ones come from halving.
        """
        if self._cached[0] != self.epoch:
            batches = self._make(self.epoch)[: self._count]
            self._cached = self.epoch, _halved(batches, self._count, fewest=2 if self._in_batch else 1)
        return self._cached[1]

    def _make(self, epoch: int) -> list[list[int]]:
        rng = random.Random(f"{self._config.seed} {epoch}")
        if self._size == 0:
            return []
        if self._config.max_tokens is not None:
            batches = self._of_tokens(rng, self._config.max_tokens)
        else:
            batches = self._of_distinct(rng) if self._repeats else self._of_examples(rng)
        rng.shuffle(batches)
        return batches

    def _of_examples(self, rng: random.Random) -> list[list[int]]:
        """Batches with as many examples as ``batch_size`` says."""
        count, size = len(self._costs), self._size
        # drop examples before sorting: otherwise the shortest would always be left out
        order = rng.sample(range(count), count // size * size)
        in_bucket = size * self._config.bucket_batches
        ordered = [
            position
            for start in range(0, len(order), in_bucket)
            for position in self._longest_first(order[start : start + in_bucket])
        ]
        return [ordered[start : start + size] for start in range(0, len(ordered), size)]

    def _of_distinct(self, rng: random.Random) -> list[list[int]]:
        """As many batches of ``batch_size`` different answers as there can be."""
        answers, size = self._answers, self._size
        return [
            batch
            for bucket in buckets(answers, size, self._most, self._config.bucket_batches, rng)
            for batch in distinct_batches(self._longest_first(bucket), answers, size)
        ]

    def _of_tokens(self, rng: random.Random, max_tokens: int) -> list[list[int]]:
        """Batches of at most ``max_tokens`` tokens; a repeated answer waits for the next batch."""
        order = rng.sample(range(len(self._costs)), len(self._costs))
        in_bucket = self._size * self._config.bucket_batches
        batches: list[list[int]] = []
        waiting: list[int] = []
        for start in range(0, len(order), in_bucket):
            waiting = self._longest_first(waiting + order[start : start + in_bucket])
            while True:
                batch, left = self._take(waiting, max_tokens)
                if not batch:
                    break
                batches.append(batch)
                waiting = left
            waiting = waiting[:in_bucket]  # more examples that share their answer would never fit
        if waiting and not self._in_batch:
            batches.append(waiting)  # the number of batches varies anyway, and these are the shortest
        return batches

    def _longest_first(self, positions: list[int]) -> list[int]:
        return sorted(positions, key=lambda position: -self._costs[position])

    def _take(self, bucket: list[int], room: int) -> tuple[list[int], list[int]]:
        """The first positions that fill a batch, and the others in order; an empty batch if none is full."""
        batch: list[int] = []
        passed: list[int] = []
        answers: set[int] = set()
        for number, position in enumerate(bucket):
            if batch and self._costs[position] > room:
                return batch, passed + bucket[number:]
            if self._repeats and self._answers[position] in answers:
                passed.append(position)
                continue
            answers.add(self._answers[position])
            batch.append(position)
            room -= self._costs[position]
            if len(batch) == self._size:
                return batch, passed + bucket[number + 1 :]
        return [], bucket


def _answer_numbers(examples: Sequence[TokenizedExample]) -> list[int]:
    """A number for each example, the same for equal answers."""
    numbers: dict[tuple[int, ...], int] = {}
    return [numbers.setdefault(tuple(example.candidates[0]), len(numbers)) for example in examples]


def _halved(batches: list[list[int]], count: int, *, fewest: int) -> list[list[int]]:
    """``count`` batches: the largest are halved, as long as both halves have ``fewest`` examples.

    Whole batches are repeated if that is not enough, which needs an epoch of tiny batches.
    """
    batches = list(batches)
    while 0 < len(batches) < count:
        largest = max(range(len(batches)), key=lambda number: len(batches[number]))
        batch = batches[largest]
        if len(batch) < 2 * fewest:
            return [*batches, *batches * count][:count]
        batches[largest : largest + 1] = [batch[::2], batch[1::2]]
    return batches

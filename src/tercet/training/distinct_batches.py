"""Full batches in which no answer occurs twice, as many as there can be."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence


def most_batches(answers: Sequence[int], size: int) -> int:
    """The largest number k of batches of ``size`` examples without an answer twice in a batch.

    An answer fills at most one place of each batch. So k batches need Σ min(examples of an answer, k) ≥ k ·
    size, and ``buckets`` and ``distinct_batches`` show that this is enough. If it holds for k, it holds for
    k − 1.
    """
    counts = Counter(answers).values()
    low, high = 0, len(answers) // size
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(count, middle) for count in counts) >= middle * size:
            low = middle
        else:
            high = middle - 1
    return low


def buckets(
    answers: Sequence[int], size: int, batches: int, bucket_batches: int, rng: random.Random
) -> Iterator[list[int]]:
    """Random examples for ``batches`` batches, by position, in buckets of ``bucket_batches`` batches.

    A bucket of b batches contains no answer more than b times. Examples that are left out are random too.

    Args:
        answers: the number of each example's answer.
        batches: at most ``most_batches``.
    """
    groups: dict[int, list[int]] = {}
    for position in rng.sample(range(len(answers)), len(answers)):
        group = groups.setdefault(answers[position], [])
        if len(group) < batches:
            group.append(position)
    grouped = [position for group in groups.values() for position in group]
    kept = sorted(rng.sample(range(len(grouped)), batches * size))
    # equal answers are adjacent and at most `batches`, so every batches-th example has another answer
    dealt = [grouped[place] for place in kept]
    for first in range(0, batches, bucket_batches):
        last = min(first + bucket_batches, batches)
        yield [position for batch in range(first, last) for position in dealt[batch::batches]]


def distinct_batches(bucket: Sequence[int], answers: Sequence[int], size: int) -> list[list[int]]:
    """A bucket divided into full batches without an answer twice, each from its beginning.

    An answer that occurs as often as batches are left must be in each of them.
    """
    waiting = list(bucket)
    counts = Counter(answers[position] for position in bucket)
    repeated = [answer for answer, count in counts.items() if count > 1]
    batches: list[list[int]] = []
    for left in range(len(bucket) // size, 1, -1):
        due = {answer for answer in repeated if counts[answer] == left}
        batch, waiting = _take(waiting, answers, size, due)
        counts.subtract(answers[position] for position in batch)
        batches.append(batch)
    return [*batches, waiting] if waiting else batches


def _take(
    waiting: Sequence[int], answers: Sequence[int], size: int, due: set[int]
) -> tuple[list[int], list[int]]:
    """A batch with all answers that are due and the first others, and the positions that still wait."""
    batch: list[int] = []
    passed: list[int] = []
    taken: set[int] = set()
    room = size - len(due)
    for number, position in enumerate(waiting):
        answer = answers[position]
        if answer in taken or (answer not in due and not room):
            passed.append(position)
            continue
        taken.add(answer)
        batch.append(position)
        room -= answer not in due
        if len(batch) == size:
            return batch, [*passed, *waiting[number + 1 :]]
    return batch, passed

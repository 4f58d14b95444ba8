"""Batches are full, random, reproducible, of similar length, and contain no answer twice."""

import random
from collections import Counter
from itertools import product

import pytest
from accelerate.data_loader import BatchSamplerShard, DataLoaderShard
from hypothesis import given
from hypothesis import strategies as st

import tercet
from tercet.settings.training import BatchConfig, ObjectiveConfig
from tercet.training.batches import LengthBatches, _halved
from tercet.training.distinct_batches import most_batches
from tercet.training.learner import Learner, eval_batches, make_training_data
from tercet.training.objectives import make_objective
from tercet.training.tokenized import ExampleDataset, TokenizedExample


def make_examples(answers: list[int]) -> list[TokenizedExample]:
    """One example per answer; contexts have 1 to 50 tokens in turn."""
    return [
        TokenizedExample(context=[1] * (position % 50 + 1), candidates=([answer],), targets=())
        for position, answer in enumerate(answers)
    ]


def batches(
    answers: list[int],
    *,
    size: int = 4,
    seed: int = 0,
    epoch: int = 0,
    distinct: bool = False,
    buckets: int = 50,
) -> list[list[int]]:
    settings = BatchConfig(batch_size=size, seed=seed, bucket_batches=buckets)
    sampler = LengthBatches(make_examples(answers), settings, distinct_answers=distinct)
    sampler.set_epoch(epoch)
    assert len(sampler) == len(list(sampler))
    return list(sampler)


def test_every_batch_is_full_and_no_example_occurs_twice() -> None:
    found = batches(list(range(203)))
    assert {len(batch) for batch in found} == {4}
    assert len(found) == 50
    assert max(Counter(position for batch in found for position in batch).values()) == 1


def test_the_order_depends_on_seed_and_epoch() -> None:
    answers = list(range(100))
    assert batches(answers) == batches(answers)
    assert batches(answers) != batches(answers, seed=1)
    assert batches(answers) != batches(answers, epoch=1)


def test_every_epoch_leaves_out_other_examples() -> None:
    left = {
        frozenset(range(10))
        - {position for batch in batches(list(range(10)), epoch=epoch) for position in batch}
        for epoch in range(20)
    }
    assert len(left) > 5


def test_lengths_within_a_batch_are_similar() -> None:
    answers = list(range(1000))
    spreads = [
        sum(
            max(batch) % 50 - min(batch) % 50
            for batch in ([p % 50 for p in b] for b in batches(answers, buckets=buckets))
        )
        for buckets in (1, 50)
    ]
    assert spreads[1] < spreads[0] / 5


@given(answers=st.lists(st.integers(0, 5), max_size=60), size=st.integers(1, 7))
def test_no_answer_occurs_twice_in_a_batch(answers: list[int], size: int) -> None:
    for batch in batches(answers, size=size, distinct=True, buckets=2):
        assert len({answers[position] for position in batch}) == len(batch)


def test_an_example_with_a_repeated_answer_joins_a_later_batch() -> None:
    found = batches([*range(10, 22), 7, 7, 7], size=3, distinct=True)  # the three longest share an answer
    assert sum(position >= 12 for batch in found for position in batch) == 3


def test_a_batch_size_above_the_data_size_uses_all_examples() -> None:
    assert sorted(batches([1, 2, 3], size=64)[0]) == [0, 1, 2]


def test_without_examples_there_are_no_batches() -> None:
    assert batches([]) == []


def test_max_tokens_limits_the_tokens_of_every_batch() -> None:
    examples = make_examples(list(range(200)))
    settings = BatchConfig(batch_size=32, max_tokens=60)
    found = list(LengthBatches(examples, settings, distinct_answers=False))
    assert Counter(position for batch in found for position in batch) == Counter(range(200))
    assert all(sum(examples[position].tokens for position in batch) <= 60 for batch in found)
    assert len({len(batch) for batch in found}) > 3


def test_an_example_longer_than_max_tokens_is_alone_in_its_batch() -> None:
    settings = BatchConfig(batch_size=4, max_tokens=10)
    found = list(LengthBatches(make_examples([*range(48)]), settings, distinct_answers=False))
    assert sum(len(batch) == 1 for batch in found) > 35


def test_negatives_are_other_answers_and_differ_between_epochs() -> None:
    clock = LengthBatches(make_examples([1]), BatchConfig(), distinct_answers=False)
    examples = ExampleDataset(make_examples(list(range(30))), negatives=5, clock=clock)
    first = [examples[position] for position in range(30)]
    for position, example in enumerate(first):
        own, *others = (candidate[0] for candidate in example.candidates)
        assert own == position
        assert len(set(others)) == 5
        assert own not in others
    assert first == [examples[position] for position in range(30)]
    clock.epoch = 1
    assert first != [examples[position] for position in range(30)]


@pytest.mark.parametrize("distinct", [False, True])
def test_every_epoch_has_as_many_batches_as_the_first(distinct: bool) -> None:
    rng = random.Random(0)
    answers = [rng.randrange(12) for _ in range(120)]
    settings = BatchConfig(batch_size=8, max_tokens=90, bucket_batches=2)
    sampler = LengthBatches(make_examples(answers), settings, distinct_answers=distinct)
    assert len({len(sampler._make(epoch)) for epoch in range(20)}) > 1  # before the correction
    for epoch in range(20):
        sampler.set_epoch(epoch)
        found = list(sampler)
        assert len(found) == len(sampler)
        assert len({position for batch in found for position in batch}) == sum(map(len, found))


def test_missing_batches_are_halves_of_the_largest() -> None:
    assert _halved([[1, 2, 3], [4, 5, 6, 7]], 4, fewest=1) == [[1, 3], [2], [4, 6], [5, 7]]
    assert _halved([[1, 2, 3], [4, 5, 6, 7]], 3, fewest=2) == [[1, 2, 3], [4, 6], [5, 7]]
    assert _halved([[1, 2, 3]], 2, fewest=2) == [[1, 2, 3]] * 2  # no half has two examples


def test_repeated_answers_cost_no_batch_that_could_be_full() -> None:
    answers = [*range(90), *range(10)]
    (batch,) = batches(answers, size=64, distinct=True)
    assert len({answers[position] for position in batch}) == 64


@given(
    answers=st.lists(st.integers(0, 9), min_size=1, max_size=80),
    size=st.integers(1, 8),
    seed=st.integers(0, 3),
    epoch=st.integers(0, 3),
    buckets=st.integers(1, 4),
)
def test_batches_of_different_answers_are_full_and_as_many_as_possible(
    answers: list[int], size: int, seed: int, epoch: int, buckets: int
) -> None:
    found = batches(answers, size=size, distinct=True, seed=seed, epoch=epoch, buckets=buckets)
    size = min(size, len(set(answers)))
    assert {len(batch) for batch in found} <= {size}
    assert all(len({answers[position] for position in batch}) == size for batch in found)
    assert len({position for batch in found for position in batch}) == size * len(found)  # each at most once
    more = len(found) + 1  # an answer fills at most one place of each batch
    assert sum(min(count, more) for count in Counter(answers).values()) < more * size
    assert found == batches(answers, size=size, distinct=True, seed=seed, epoch=epoch, buckets=buckets)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_number_of_batches_is_the_largest_for_all_small_counts(size: int) -> None:
    for counts in product(range(1, 14, 2), repeat=3):
        answers = [answer for answer, count in enumerate(counts) for _ in range(count)]
        fits = [k for k in range(len(answers) + 1) if sum(min(count, k) for count in counts) >= k * size]
        assert most_batches(answers, size) == fits[-1] == len(fits) - 1


def test_examples_with_repeated_answers_take_turns() -> None:
    answers = [0] * 10 + [*range(1, 7)]
    found = [batches(answers, size=3, distinct=True, epoch=epoch) for epoch in range(30)]
    assert {len(each) for each in found} == {3}
    assert {position for each in found for batch in each for position in batch} == set(range(16))


def test_batches_without_repeated_answers_have_similar_lengths_too() -> None:
    answers = [position // 2 for position in range(1000)]
    spreads = [
        sum(
            max(lengths) - min(lengths)
            for lengths in (
                [position % 50 for position in batch]
                for batch in batches(answers, distinct=True, buckets=buckets)
            )
        )
        for buckets in (1, 50)
    ]
    assert spreads[1] < spreads[0] / 4


def test_examples_that_fit_no_batch_are_counted() -> None:
    sampler = LengthBatches(
        make_examples([0] * 50 + [*range(1, 11)]), BatchConfig(batch_size=2), distinct_answers=True
    )
    assert sampler.left_out == 60 - 2 * len(sampler) == 40


def test_the_epoch_reaches_the_batches_of_several_processes() -> None:
    sampler = LengthBatches(make_examples([*range(40)]), BatchConfig(batch_size=4), distinct_answers=False)
    shard = BatchSamplerShard(sampler, num_processes=2, process_index=0)
    loader = DataLoaderShard(ExampleDataset(make_examples([*range(40)])), batch_sampler=shard)
    before = list(shard)
    loader.set_epoch(1)
    assert sampler.epoch == 1
    assert before != list(shard)


def test_examples_that_fit_no_batch_cause_a_warning(tiny: tercet.BiEncoder) -> None:
    objective = make_objective(ObjectiveConfig(kind="in_batch"), tiny)
    rows = make_examples([0] * 50 + [*range(1, 11)])
    with pytest.warns(
        UserWarning, match="40 of 60 examples are skipped in each epoch, because too many examples have"
    ):
        make_training_data(Learner(tiny, objective), BatchConfig(batch_size=2), train=rows, dev=rows[-4:])


@pytest.mark.parametrize(
    ("count", "batches"), [(3, [[0, 1, 2]]), (5, [[0, 1], [2, 3, 4]]), (4, [[0, 1], [2, 3]]), (1, [[0]])]
)
def test_a_single_remaining_example_joins_the_last_batch(count: int, batches: list[list[int]]) -> None:
    examples = [TokenizedExample([0] * (9 - position), ([0],), ()) for position in range(count)]
    assert eval_batches(examples, 2) == batches

"""Batches are full, random, reproducible, of about equal length, and hold no answer twice."""

import random
from collections import Counter

import pytest
from accelerate.data_loader import BatchSamplerShard, DataLoaderShard
from hypothesis import given
from hypothesis import strategies as st

import tercet
from tercet.training.batches import LengthBatches
from tercet.training.examples import Example, Examples
from tercet.training.learner import Learner, look_batches, material
from tercet.training.objectives import make_objective
from tercet.training.settings import BatchSettings, ObjectiveConfig


def made(answers: list[int]) -> list[Example]:
    """An example for each answer; its length is its position, from 1 to 50."""
    return [
        Example(context=[1] * (place % 50 + 1), candidates=([answer],), targets=())
        for place, answer in enumerate(answers)
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
    settings = BatchSettings(examples=size, seed=seed, bucket_batches=buckets)
    sampler = LengthBatches(made(answers), settings, distinct_answers=distinct)
    sampler.set_epoch(epoch)
    assert len(sampler) == len(list(sampler))
    return list(sampler)


def test_every_batch_is_full_and_no_example_comes_twice() -> None:
    found = batches(list(range(203)))
    assert {len(batch) for batch in found} == {4}
    assert len(found) == 50
    assert max(Counter(position for batch in found for position in batch).values()) == 1


def test_an_order_follows_seed_and_epoch() -> None:
    answers = list(range(100))
    assert batches(answers) == batches(answers)
    assert batches(answers) != batches(answers, seed=1)
    assert batches(answers) != batches(answers, epoch=1)


def test_what_is_left_out_of_an_epoch_changes() -> None:
    left = {
        frozenset(range(10))
        - {position for batch in batches(list(range(10)), epoch=epoch) for position in batch}
        for epoch in range(20)
    }
    assert len(left) > 5


def test_lengths_in_a_batch_are_about_equal() -> None:
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
def test_no_answer_comes_twice_in_a_batch(answers: list[int], size: int) -> None:
    for batch in batches(answers, size=size, distinct=True, buckets=2):
        assert len({answers[position] for position in batch}) == len(batch)


def test_an_example_that_had_to_wait_comes_later() -> None:
    found = batches([*range(10, 22), 7, 7, 7], size=3, distinct=True)  # the longest three
    assert sum(position >= 12 for batch in found for position in batch) == 3


def test_a_batch_larger_than_the_data_holds_all_of_it() -> None:
    assert sorted(batches([1, 2, 3], size=64)[0]) == [0, 1, 2]


def test_no_examples_give_no_batches() -> None:
    assert batches([]) == []


def test_a_budget_of_tokens_makes_long_examples_fewer_in_a_batch() -> None:
    examples = made(list(range(200)))
    settings = BatchSettings(examples=32, tokens=60)
    found = list(LengthBatches(examples, settings, distinct_answers=False))
    assert Counter(position for batch in found for position in batch) == Counter(range(200))
    assert all(sum(examples[place].tokens for place in batch) <= 60 for batch in found)
    assert len({len(batch) for batch in found}) > 3


def test_an_example_longer_than_the_budget_is_alone() -> None:
    settings = BatchSettings(examples=4, tokens=10)
    found = list(LengthBatches(made([*range(48)]), settings, distinct_answers=False))
    assert sum(len(batch) == 1 for batch in found) > 35


def test_negatives_are_other_answers_drawn_anew_in_every_epoch() -> None:
    clock = LengthBatches(made([1]), BatchSettings(), distinct_answers=False)
    examples = Examples(made(list(range(30))), negatives=5, clock=clock)
    first = [examples[place] for place in range(30)]
    for place, example in enumerate(first):
        own, *others = (candidate[0] for candidate in example.candidates)
        assert own == place
        assert len(set(others)) == 5
        assert own not in others
    assert first == [examples[place] for place in range(30)]
    clock.epoch = 1
    assert first != [examples[place] for place in range(30)]


def test_every_epoch_has_as_many_batches_as_the_first() -> None:
    chance = random.Random(0)
    answers = [chance.randrange(12) for _ in range(120)]
    sampler = LengthBatches(made(answers), BatchSettings(examples=8), distinct_answers=True)
    assert len({len(sampler._make(epoch)) for epoch in range(20)}) > 1  # left alone, they differ
    counts = set()
    for epoch in range(20):
        sampler.set_epoch(epoch)
        counts.add(len(list(sampler)))
    assert counts == {len(sampler)}


def test_examples_that_find_no_place_are_counted() -> None:
    sampler = LengthBatches(
        made([0] * 50 + [*range(1, 11)]), BatchSettings(examples=2), distinct_answers=True
    )
    assert sampler.left_out == 60 - 2 * len(sampler) == 40


def test_the_epoch_reaches_the_batches_of_several_processes() -> None:
    sampler = LengthBatches(made([*range(40)]), BatchSettings(examples=4), distinct_answers=False)
    shard = BatchSamplerShard(sampler, num_processes=2, process_index=0)
    loader = DataLoaderShard(Examples(made([*range(40)])), batch_sampler=shard)
    before = list(shard)
    loader.set_epoch(1)
    assert sampler.epoch == 1
    assert before != list(shard)


def test_rows_that_find_no_batch_are_said(tiny: tercet.BiEncoder) -> None:
    objective = make_objective(ObjectiveConfig(kind="in_batch"), tiny)
    rows = made([0] * 50 + [*range(1, 11)])
    with pytest.warns(UserWarning, match="40 of 60 examples share their answer with so many others"):
        material(Learner(tiny, objective), BatchSettings(examples=2), train=rows, dev=rows[-4:])


@pytest.mark.parametrize(
    ("examples", "batches"), [(3, [[0, 1, 2]]), (5, [[0, 1], [2, 3, 4]]), (4, [[0, 1], [2, 3]]), (1, [[0]])]
)
def test_one_that_would_be_left_alone_joins_the_last_batch(examples: int, batches: list[list[int]]) -> None:
    lessons = [Example([0] * (9 - place), ([0],), ()) for place in range(examples)]
    assert look_batches(lessons, 2) == batches

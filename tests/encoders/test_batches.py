"""Batches by tokens, and windows of a stream."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from tercet.encoders.batches import batches_by_tokens, observed, observing_batches, windows
from tercet.settings.encoding import EncodingConfig

LENGTHS = st.lists(st.integers(min_value=1, max_value=300), max_size=60)


def test_batches_have_the_longest_texts_first_and_stay_within_the_budget() -> None:
    assert batches_by_tokens([3, 9, 5, 2], 10) == [[1], [2, 0, 3]]  # 9 | 5 + 3 + 2


def test_a_text_longer_than_the_budget_has_a_batch_of_its_own() -> None:
    assert batches_by_tokens([4, 50, 4], 10) == [[1], [0, 2]]


@given(lengths=LENGTHS, budget=st.integers(min_value=1, max_value=400))
def test_every_text_is_in_exactly_one_batch_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = batches_by_tokens(lengths, budget)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    assert all(sum(lengths[position] for position in batch) <= budget or len(batch) == 1 for batch in batches)


@given(texts=st.lists(st.text(max_size=9), max_size=40))
def test_windows_keep_the_order_and_their_limits(texts: list[str]) -> None:
    config = EncodingConfig(window_texts=4, window_characters=12)
    parts = list(windows(texts, config, size_of=len))
    assert [text for window in parts for text in window] == texts
    assert all(0 < len(window) <= 4 and sum(map(len, window[:-1])) < 12 for window in parts)


def test_a_window_reads_no_further_than_its_last_text() -> None:
    read = []

    def texts() -> Iterator[str]:
        for number in range(100):
            read.append(number)
            yield str(number)

    next(windows(texts(), EncodingConfig(window_texts=4), size_of=len))
    assert read == [0, 1, 2, 3]


def test_an_observer_hears_of_batches_only_within_its_block() -> None:
    sizes: list[int] = []
    with observing_batches(sizes.append):
        list(observed([[0, 1], [2]]))
    list(observed([[0, 1, 2]]))
    assert sizes == [2, 1]

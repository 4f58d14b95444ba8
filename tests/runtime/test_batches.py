from hypothesis import given
from hypothesis import strategies as st

from tercet.config import BatchConfig
from tercet.runtime.batches import batches_by_tokens, windows

LENGTHS = st.lists(st.integers(min_value=1, max_value=300), max_size=60)


def test_longest_texts_come_first_and_budgets_hold() -> None:
    assert batches_by_tokens([3, 9, 5, 2], 10) == [[1], [2, 0, 3]]  # 9 | 5 + 3 + 2


def test_a_text_beyond_the_budget_goes_alone() -> None:
    assert batches_by_tokens([4, 50, 4], 10) == [[1], [0, 2]]


@given(lengths=LENGTHS, budget=st.integers(min_value=1, max_value=400))
def test_every_text_is_in_exactly_one_batch_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = batches_by_tokens(lengths, budget)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    assert all(sum(lengths[at] for at in batch) <= budget or len(batch) == 1 for batch in batches)


@given(texts=st.lists(st.text(max_size=9), max_size=40))
def test_windows_keep_the_order_and_their_bounds(texts: list[str]) -> None:
    config = BatchConfig(window_texts=4, window_characters=12)
    cut = list(windows(texts, config, size_of=len))
    assert [text for window in cut for text in window] == texts
    assert all(0 < len(window) <= 4 and sum(map(len, window[:-1])) < 12 for window in cut)


def test_windows_read_no_further_than_they_must() -> None:
    read = []

    def texts() -> object:
        for number in range(100):
            read.append(number)
            yield str(number)

    next(windows(texts(), BatchConfig(window_texts=4), size_of=len))
    assert read == [0, 1, 2, 3]

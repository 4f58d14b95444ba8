"""What every index of vectors does alike: a new one joins by a line."""

from collections.abc import Callable

import numpy as np
import pytest

from tercet.errors import InputError
from tercet.index.approximate import ApproximateIndex
from tercet.index.base import VectorIndex
from tercet.index.exact import ExactIndex
from tercet.records import Codes, Floats

WIDTH = 8
MAKERS: dict[str, Callable[[], VectorIndex]] = {
    "exact": lambda: ExactIndex(WIDTH),
    "exact bfloat16": lambda: ExactIndex(WIDTH, storage="bfloat16"),
    "exact int8": lambda: ExactIndex(WIDTH, storage="int8"),
    "graph": lambda: ApproximateIndex(WIDTH, method="graph"),
    "lists": lambda: ApproximateIndex(WIDTH, method="lists"),
}


@pytest.fixture(params=list(MAKERS))
def index(request: pytest.FixtureRequest) -> VectorIndex:
    return MAKERS[request.param]()


def vectors(count: int, seed: int = 0) -> Floats:
    drawn = np.random.default_rng(seed).standard_normal((count, WIDTH), dtype=np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def ask(*codes: Floats) -> Codes:
    return Codes(np.stack(codes), np.ones((len(codes), len(codes[0])), dtype=np.bool_))


def test_a_vector_finds_itself_first(index: VectorIndex) -> None:
    kept = vectors(50)
    index.add(np.arange(100, 150), kept)
    found = index.search(ask(kept[3:4], kept[7:8]), 3)
    assert found.ids[:, 0].tolist() == [103, 107]
    assert found.scores[:, 0] == pytest.approx([1, 1], abs=0.02)
    assert (np.diff(found.scores, axis=1) <= 0).all()


def test_several_codes_find_what_one_of_them_points_to(index: VectorIndex) -> None:
    kept = vectors(50)
    index.add(np.arange(50), kept)
    found = index.search(ask(kept[[3, 4]]), 2, scale=100.0)
    assert set(found.ids[0].tolist()) == {3, 4}


def test_what_is_removed_is_not_found(index: VectorIndex) -> None:
    kept = vectors(20)
    index.add(np.arange(20), kept)
    index.remove(np.array([3, 5]))
    assert len(index) == 18
    found = index.search(ask(kept[3:4]), 20)
    assert set(found.ids[0].tolist()) == set(range(20)) - {3, 5} | {-1}
    index.add(np.array([3]), kept[3:4])
    assert index.search(ask(kept[3:4]), 1).ids.tolist() == [[3]]


def test_what_is_replaced_is_found_where_it_is_now(index: VectorIndex) -> None:
    kept = vectors(20)
    index.add(np.arange(20), kept)
    index.replace(np.array([4]), -kept[9:10])
    assert len(index) == 20
    assert index.search(ask(-kept[9:10]), 1).ids.tolist() == [[4]]
    assert index.vectors(np.array([4, 9])) == pytest.approx(np.stack([-kept[9], kept[9]]), abs=0.02)


def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    assert len(index) == 0
    found = index.search(ask(vectors(2)), 3)
    assert found.ids.tolist() == [[-1, -1, -1]]
    assert found.scores.tolist() == [[-np.inf] * 3]
    index.add(np.empty(0, dtype=np.int64), np.empty((0, WIDTH), dtype=np.float32))
    assert len(index) == 0


def test_everything_can_be_removed(index: VectorIndex) -> None:
    index.add(np.arange(5), vectors(5))
    index.remove(np.arange(5))
    assert len(index) == 0
    assert index.search(ask(vectors(1)), 1).ids.tolist() == [[-1]]


def test_wrong_input_is_refused_and_changes_nothing(index: VectorIndex) -> None:
    index.add(np.arange(5), vectors(5))
    holes = vectors(1)
    holes[0, 2] = np.nan
    for ids, given, message in [
        (np.array([4]), vectors(1), "id 4 is there already"),
        (np.array([7, 7]), vectors(2), "an id may come once, and 7 comes 2 times"),
        (np.array([-2]), vectors(1), "an id must be at least 0, got -2"),
        (np.array([0.5]), vectors(1), "ids must be a list of whole numbers"),
        (np.array([7]), vectors(2), r"vectors must be \[1, 8\], one for each id, got \[2, 8\]"),
        (np.array([7]), vectors(1)[:, :5], r"vectors must be \[1, 8\]"),
        (np.array([7]), holes, "vector 0 holds a number that is not finite"),
    ]:
        with pytest.raises(InputError, match=message):
            index.add(ids, given)
    with pytest.raises(InputError, match="there is no id 9"):
        index.remove(np.array([1, 9]))
    with pytest.raises(InputError, match="there is no id 9"):
        index.replace(np.array([1, 9]), vectors(2))
    with pytest.raises(InputError, match="there is no id 9"):
        index.vectors(np.array([9]))
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        index.search(ask(vectors(1)), 0)
    with pytest.raises(InputError, match=r"codes must be \[B, M, 8\]"):
        index.search(ask(vectors(1)[:, :4]), 1)
    with pytest.raises(InputError, match="every context needs at least one code"):
        index.search(Codes(vectors(2)[None], np.zeros((1, 2), dtype=np.bool_)), 1)
    assert len(index) == 5

"""What every index does alike: a new one joins by a line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tercet.errors import InputError, OutputError
from tercet.index.approximate import ApproximateIndex
from tercet.index.base import Found, VectorIndex
from tercet.index.exact import ExactIndex
from tercet.index.lexical import LexicalIndex
from tercet.records import Codes, Counts, Floats

WIDTH = 8
VECTORS: dict[str, Callable[[], VectorIndex]] = {
    "exact": lambda: ExactIndex(WIDTH),
    "exact bfloat16": lambda: ExactIndex(WIDTH, storage="bfloat16"),
    "exact int8": lambda: ExactIndex(WIDTH, storage="int8"),
    "graph": lambda: ApproximateIndex(WIDTH, method="graph"),
    "lists": lambda: ApproximateIndex(WIDTH, method="lists"),
}


class Words:
    """The index of words as an index of vectors: each vector is a word."""

    def __init__(self, folder: Path) -> None:
        self.index = LexicalIndex(folder)

    def __len__(self) -> int:
        return len(self.index)

    def add(self, ids: Counts, vectors: Floats) -> None:
        self.index.add(ids, map(word, vectors))

    def remove(self, ids: Counts) -> None:
        self.index.remove(ids)

    def replace(self, ids: Counts, vectors: Floats) -> None:
        self.index.change(ids, ids, map(word, vectors))

    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> Found:
        found = [self.index.search(" ".join(map(word, vectors)), k) for vectors in codes.vectors]
        rows = [[*hits, *[(-1, -np.inf)] * (k - len(hits))] for hits in found]
        ids, scores = np.array(rows).transpose(2, 0, 1)
        return Found(ids.astype(int), scores, ("certified",) * len(rows), np.zeros(len(rows)))


def word(vector: Floats) -> str:
    return "w" + (1000 * vector).astype(int).tobytes().hex()[:36]


@pytest.fixture(params=[*VECTORS, "words"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> VectorIndex | Words:
    return Words(tmp_path) if request.param == "words" else VECTORS[request.param]()


@pytest.fixture(params=list(VECTORS))
def vector_index(request: pytest.FixtureRequest) -> VectorIndex:
    return VECTORS[request.param]()


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


def test_scores_are_inner_products_the_largest_first(vector_index: VectorIndex) -> None:
    kept = vectors(50)
    vector_index.add(np.arange(50), kept)
    found = vector_index.search(ask(kept[3:4]), 3)
    assert found.scores[0] == pytest.approx(np.sort(kept @ kept[3])[::-1][:3], abs=0.02)
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
    found = index.search(ask(kept[3:5]), 20)
    assert not {3, 5} & set(found.ids[0].tolist())
    assert 4 in found.ids[0]
    index.add(np.array([3]), kept[3:4])
    assert index.search(ask(kept[3:4]), 1).ids.tolist() == [[3]]


def test_what_is_replaced_is_found_where_it_is_now(index: VectorIndex) -> None:
    kept = vectors(20)
    index.add(np.arange(20), kept)
    index.replace(np.array([4]), -kept[9:10])
    assert len(index) == 20
    assert index.search(ask(-kept[9:10]), 1).ids.tolist() == [[4]]


def test_vectors_come_back(vector_index: VectorIndex) -> None:
    kept = vectors(20)
    vector_index.add(np.arange(20), kept)
    vector_index.replace(np.array([4]), -kept[9:10])
    assert vector_index.vectors(np.array([4, 9])) == pytest.approx(np.stack([-kept[9], kept[9]]), abs=0.02)


def test_a_saved_index_is_loaded_and_goes_on(vector_index: VectorIndex, tmp_path: Path) -> None:
    kept = vectors(30)
    vector_index.add(np.arange(30), kept)
    vector_index.remove(np.arange(10))
    loaded = type(vector_index).load(vector_index.save(tmp_path / "index"))
    assert len(loaded) == 20
    wanted = vector_index.search(ask(kept[12:16]), 5)
    assert loaded.search(ask(kept[12:16]), 5).ids.tolist() == wanted.ids.tolist()
    loaded.add(np.array([3]), kept[3:4])
    loaded.remove(np.array([20]))
    assert loaded.search(ask(kept[3:4]), 1).ids.tolist() == [[3]]
    assert 20 not in loaded.search(ask(kept[20:21]), 30).ids
    with pytest.raises(OutputError, match="exists"):
        loaded.save(tmp_path / "index")


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


def test_wrong_input_is_refused_and_changes_nothing(vector_index: VectorIndex) -> None:
    vector_index.add(np.arange(5), vectors(5))
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
            vector_index.add(ids, given)
    with pytest.raises(InputError, match="there is no id 9"):
        vector_index.remove(np.array([1, 9]))
    with pytest.raises(InputError, match="there is no id 9"):
        vector_index.replace(np.array([1, 9]), vectors(2))
    with pytest.raises(InputError, match="there is no id 9"):
        vector_index.vectors(np.array([9]))
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        vector_index.search(ask(vectors(1)), 0)
    with pytest.raises(InputError, match=r"codes must be \[B, M, 8\]"):
        vector_index.search(ask(vectors(1)[:, :4]), 1)
    with pytest.raises(InputError, match="every context needs at least one code"):
        vector_index.search(Codes(vectors(2)[None], np.zeros((1, 2), dtype=np.bool_)), 1)
    assert len(vector_index) == 5

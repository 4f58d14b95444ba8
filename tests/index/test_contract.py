"""The contract of all indexes; a new one joins by one line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tercet.errors import InputError, OutputError
from tercet.index.approximate import ApproximateIndex
from tercet.index.base import SearchResult, VectorIndex
from tercet.index.exact import ExactIndex
from tercet.index.lexical import LexicalIndex
from tercet.records import Certainty, Codes, Floats, Ints

WIDTH = 8
VECTOR_INDEXES: dict[str, Callable[[], VectorIndex]] = {
    "exact": lambda: ExactIndex(WIDTH),
    "exact bfloat16": lambda: ExactIndex(WIDTH, storage="bfloat16"),
    "exact int8": lambda: ExactIndex(WIDTH, storage="int8"),
    "hnsw": lambda: ApproximateIndex(WIDTH, method="hnsw"),
    "ivf": lambda: ApproximateIndex(WIDTH, method="ivf"),
}


class LexicalAdapter:
    """A lexical index behind the interface of a vector index: each vector is a term."""

    def __init__(self, folder: Path) -> None:
        self.index = LexicalIndex(folder)

    def __len__(self) -> int:
        return len(self.index)

    def add(self, ids: Ints, vectors: Floats) -> None:
        self.index.add(ids, map(term, vectors))

    def remove(self, ids: Ints) -> None:
        self.index.remove(ids)

    def replace(self, ids: Ints, vectors: Floats) -> None:
        self.index.change(ids, ids, map(term, vectors))

    def search(self, codes: Codes, k: int, *, scale: float = 1.0) -> SearchResult:
        found = [self.index.search(" ".join(map(term, vectors)), k) for vectors in codes.vectors]
        rows = [[*hits, *[(-1, -np.inf)] * (k - len(hits))] for hits in found]
        ids, scores = np.array(rows).transpose(2, 0, 1)
        return SearchResult(ids.astype(int), scores, (Certainty.CERTIFIED,) * len(rows), np.zeros(len(rows)))


def term(vector: Floats) -> str:
    return "w" + (1000 * vector).astype(int).tobytes().hex()[:36]


@pytest.fixture(params=[*VECTOR_INDEXES, "lexical"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> VectorIndex | LexicalAdapter:
    return LexicalAdapter(tmp_path) if request.param == "lexical" else VECTOR_INDEXES[request.param]()


@pytest.fixture(params=list(VECTOR_INDEXES))
def vector_index(request: pytest.FixtureRequest) -> VectorIndex:
    return VECTOR_INDEXES[request.param]()


def vectors(count: int, seed: int = 0) -> Floats:
    rows = np.random.default_rng(seed).standard_normal((count, WIDTH), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def query(*codes: Floats) -> Codes:
    return Codes(np.stack(codes), np.ones((len(codes), len(codes[0])), dtype=np.bool_))


def test_a_vector_finds_itself_first(index: VectorIndex) -> None:
    rows = vectors(50)
    index.add(np.arange(100, 150), rows)
    result = index.search(query(rows[3:4], rows[7:8]), 3)
    assert result.ids[:, 0].tolist() == [103, 107]


def test_scores_are_inner_products_largest_first(vector_index: VectorIndex) -> None:
    rows = vectors(50)
    vector_index.add(np.arange(50), rows)
    result = vector_index.search(query(rows[3:4]), 3)
    assert result.scores[0] == pytest.approx(np.sort(rows @ rows[3])[::-1][:3], abs=0.02)
    assert (np.diff(result.scores, axis=1) <= 0).all()


def test_several_codes_find_the_nearest_vector_of_each(index: VectorIndex) -> None:
    rows = vectors(50)
    index.add(np.arange(50), rows)
    result = index.search(query(rows[[3, 4]]), 2, scale=100.0)
    assert set(result.ids[0].tolist()) == {3, 4}


def test_a_removed_vector_is_not_found(index: VectorIndex) -> None:
    rows = vectors(20)
    index.add(np.arange(20), rows)
    index.remove(np.array([3, 5]))
    assert len(index) == 18
    result = index.search(query(rows[3:5]), 20)
    assert not {3, 5} & set(result.ids[0].tolist())
    assert 4 in result.ids[0]
    index.add(np.array([3]), rows[3:4])
    assert index.search(query(rows[3:4]), 1).ids.tolist() == [[3]]


def test_a_replaced_vector_is_found_by_its_new_value(index: VectorIndex) -> None:
    rows = vectors(20)
    index.add(np.arange(20), rows)
    index.replace(np.array([4]), -rows[9:10])
    assert len(index) == 20
    assert index.search(query(-rows[9:10]), 1).ids.tolist() == [[4]]


def test_vectors_are_returned_by_id(vector_index: VectorIndex) -> None:
    rows = vectors(20)
    vector_index.add(np.arange(20), rows)
    vector_index.replace(np.array([4]), -rows[9:10])
    assert vector_index.vectors(np.array([4, 9])) == pytest.approx(np.stack([-rows[9], rows[9]]), abs=0.02)


def test_a_loaded_index_finds_the_same_and_can_be_changed(vector_index: VectorIndex, tmp_path: Path) -> None:
    rows = vectors(30)
    vector_index.add(np.arange(30), rows)
    vector_index.remove(np.arange(10))
    loaded = type(vector_index).load(vector_index.save(tmp_path / "index"))
    assert len(loaded) == 20
    expected = vector_index.search(query(rows[12:16]), 5)
    assert loaded.search(query(rows[12:16]), 5).ids.tolist() == expected.ids.tolist()
    loaded.add(np.array([3]), rows[3:4])
    loaded.remove(np.array([20]))
    assert loaded.search(query(rows[3:4]), 1).ids.tolist() == [[3]]
    assert 20 not in loaded.search(query(rows[20:21]), 30).ids
    with pytest.raises(OutputError, match="exists"):
        loaded.save(tmp_path / "index")


def test_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    assert len(index) == 0
    result = index.search(query(vectors(2)), 3)
    assert set(result.ids.ravel().tolist()) == {-1}
    assert set(result.scores.ravel().tolist()) == {-np.inf}
    index.add(np.empty(0, dtype=np.int64), np.empty((0, WIDTH), dtype=np.float32))
    assert len(index) == 0


def test_all_vectors_can_be_removed(index: VectorIndex) -> None:
    index.add(np.arange(5), vectors(5))
    index.remove(np.arange(5))
    assert len(index) == 0
    assert index.search(query(vectors(1)), 1).ids.tolist() == [[-1]]


def test_invalid_input_is_refused_and_changes_nothing(vector_index: VectorIndex) -> None:
    vector_index.add(np.arange(5), vectors(5))
    not_finite = vectors(1)
    not_finite[0, 2] = np.nan
    for ids, rows, message in [
        (np.array([4]), vectors(1), "id 4 exists already: replace it, or remove it first"),
        (np.array([7, 7]), vectors(2), "ids must be distinct, but 7 appears 2 times"),
        (np.array([-2]), vectors(1), "an id must be at least 0, got -2"),
        (np.array([0.5]), vectors(1), "ids must be a list of whole numbers"),
        (np.array([7]), vectors(2), r"vectors must be \[1, 8\], one per id, got \[2, 8\]"),
        (np.array([7]), vectors(1)[:, :5], r"vectors must be \[1, 8\]"),
        (np.array([7]), not_finite, "vector 0 contains NaN or infinity"),
    ]:
        with pytest.raises(InputError, match=message):
            vector_index.add(ids, rows)
    with pytest.raises(InputError, match="the index has no id 9"):
        vector_index.remove(np.array([1, 9]))
    with pytest.raises(InputError, match="the index has no id 9"):
        vector_index.replace(np.array([1, 9]), vectors(2))
    with pytest.raises(InputError, match="the index has no id 9"):
        vector_index.vectors(np.array([9]))
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        vector_index.search(query(vectors(1)), 0)
    with pytest.raises(InputError, match=r"codes must be \[B, M, 8\]"):
        vector_index.search(query(vectors(1)[:, :4]), 1)
    with pytest.raises(InputError, match="every context needs at least one code"):
        vector_index.search(Codes(vectors(2)[None], np.zeros((1, 2), dtype=np.bool_)), 1)
    assert len(vector_index) == 5

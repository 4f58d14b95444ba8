"""Approximate search: its recall, and what it says about its certainty."""

from pathlib import Path

import numpy as np
import pytest

from tercet.errors import BrokenIndexError, InputError
from tercet.files.structured import read_json, write_json
from tercet.index.approximate import FAISS_FILE, MANIFEST, ApproximateIndex
from tercet.index.exact import ExactIndex
from tercet.index.faiss_index import METHODS, Method
from tercet.records import Certainty, Codes, Floats


def clustered(count: int, width: int = 24, seed: int = 3) -> Floats:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, width))
    vectors = centres[rng.integers(40, size=count)] + 0.5 * rng.standard_normal((count, width))
    return np.float32(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def contexts(count: int, codes: int) -> Codes:
    return Codes(
        clustered(count * codes, seed=9).reshape(count, codes, -1), np.ones((count, codes), dtype=np.bool_)
    )


@pytest.fixture(scope="module", params=list(METHODS))
def method(request: pytest.FixtureRequest) -> Method:
    name: Method = request.param
    return name


@pytest.mark.parametrize("codes", [1, 8])
def test_recall_is_high_and_the_result_certified_up_to_it(method: Method, codes: int) -> None:
    vectors, queries = clustered(5000), contexts(20, codes)
    index, exact = ApproximateIndex(24, method=method), ExactIndex(24)
    for each in (index, exact):
        each.add(np.arange(5000), vectors)
    result, expected = index.search(queries, 10, scale=10.0), exact.search(queries, 10, scale=10.0)
    shared = [len(set(a) & set(b)) for a, b in zip(result.ids.tolist(), expected.ids.tolist(), strict=True)]
    assert np.mean(shared) >= 9.5
    assert set(result.certainty) == {Certainty.CERTIFIED_UP_TO_RECALL}
    assert result.scored.max() < 2500
    same = result.ids == expected.ids
    assert result.scores[same].tolist() == expected.scores[same].tolist()


def test_a_search_stops_at_its_budget_and_says_so(method: Method) -> None:
    index = ApproximateIndex(24, method=method, budget=50)
    index.add(np.arange(3000), clustered(3000))
    result = index.search(contexts(5, 8), 10, scale=0.1)
    assert set(result.certainty) == {Certainty.BUDGET_REACHED}
    assert result.scored.max() < 1000


def test_an_index_grows_from_one_vector_to_many_and_forgets_removed_ones(method: Method) -> None:
    index, vectors = ApproximateIndex(24, method=method), clustered(3000)
    for start, end in ((0, 1), (1, 30), (30, 900), (900, 2000), (2000, 3000)):
        index.add(np.arange(start, end), vectors[start:end])
    index.remove(np.arange(0, 3000, 2))
    assert len(index) == 1500
    queries = Codes(vectors[:200, None], np.ones((200, 1), dtype=np.bool_))
    ids = index.search(queries, 1).ids[:, 0]
    assert (ids % 2 == 1).all()
    assert np.mean(ids[1::2] == np.arange(1, 200, 2)) > 0.97
    index.remove(np.arange(1, 2001, 2))
    index.add(np.array([9000]), vectors[:1])  # so few are left that the faiss index is built anew
    assert index.search(queries, 1).ids[0, 0] == 9000


def test_a_loaded_index_finds_the_same(method: Method, tmp_path: Path) -> None:
    index, queries = ApproximateIndex(24, method=method), contexts(10, 4)
    index.add(np.arange(10, 3010), clustered(3000))
    index.remove(np.arange(10, 500))
    loaded = ApproximateIndex.load(index.save(tmp_path / "index"))
    assert len(loaded) == len(index)
    assert loaded.search(queries, 5).ids.tolist() == index.search(queries, 5).ids.tolist()
    loaded.add(np.array([77777]), queries.vectors[0, :1])
    assert 77777 in loaded.search(queries, 5, scale=50.0).ids
    empty = ApproximateIndex.load(ApproximateIndex(24, method=method).save(tmp_path / "empty"))
    assert empty.search(queries, 1).ids[0, 0] == -1


def test_a_loaded_index_keeps_its_settings(method: Method, tmp_path: Path) -> None:
    index = ApproximateIndex(24, method=method, search_effort=70, budget=900, storage="int8")
    loaded = ApproximateIndex.load(index.save(tmp_path / "index"))
    assert (loaded.method, loaded.search_effort, loaded.budget) == (method, 70, 900)
    loaded.add(np.arange(5), clustered(5))
    kept = ApproximateIndex.load(loaded.save(tmp_path / "again"))
    assert np.abs(kept.vectors(np.arange(5)) - clustered(5)).max() > 0  # rounded to int8


def test_a_truncated_faiss_file_is_named(method: Method, tmp_path: Path) -> None:
    index = ApproximateIndex(24, method=method)
    index.add(np.arange(3000), clustered(3000))
    file = index.save(tmp_path / "index") / FAISS_FILE
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(BrokenIndexError, match=r"faiss\.index is truncated or damaged"):
        ApproximateIndex.load(tmp_path / "index")


def test_an_index_of_another_format_is_refused(method: Method, tmp_path: Path) -> None:
    file = ApproximateIndex(24, method=method).save(tmp_path / "index") / MANIFEST
    write_json(file, read_json(file) | {"format": 3})
    with pytest.raises(
        InputError, match=r'has index format 3, .* build it again in a new folder, with "tercet index build"'
    ):
        ApproximateIndex.load(tmp_path / "index")


def test_an_unknown_method_is_refused_with_the_choices() -> None:
    with pytest.raises(InputError, match="method must be one of hnsw, ivf, got 'graph'"):
        ApproximateIndex(24, method="graph")


def test_an_index_whose_vectors_were_all_removed_is_empty_and_can_be_saved(
    method: Method, tmp_path: Path
) -> None:
    index = ApproximateIndex(24, method=method)
    index.add(np.arange(2000), clustered(2000))
    index.remove(np.arange(2000))
    loaded = ApproximateIndex.load(index.save(tmp_path / "index"))
    for each in (index, loaded):
        assert each.search(contexts(1, 3), 4).ids.tolist() == [[-1]]
        each.add(np.arange(5), clustered(5))
        assert len(each) == 5


def test_the_few_vectors_that_are_left_are_found(method: Method) -> None:
    index, vectors = ApproximateIndex(24, method=method), clustered(3000)
    index.add(np.arange(3000), vectors)
    index.remove(np.arange(20, 3000))
    for ids in index.search(contexts(10, 2), 5).ids.tolist():
        assert len(set(ids) & set(range(20))) == 5


def test_an_index_trained_on_few_vectors_is_trained_again_on_many(method: Method) -> None:
    index, exact = ApproximateIndex(24, method=method), ExactIndex(24)
    for each in (index, exact):
        each.add(np.arange(1000), 0.01 * clustered(1000))  # short vectors, which train a wrong range
        each.add(np.arange(1000, 6000), clustered(5000, seed=4))
    queries = contexts(20, 1)
    ids, expected = index.search(queries, 10).ids.tolist(), exact.search(queries, 10).ids.tolist()
    assert np.mean([len(set(a) & set(b)) for a, b in zip(ids, expected, strict=True)]) >= 9.5

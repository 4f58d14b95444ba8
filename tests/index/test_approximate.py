"""Approximate search: what it finds, and that it says how sure it is."""

from pathlib import Path

import numpy as np
import pytest

from tercet.errors import BrokenIndexError
from tercet.index.approximate import FILE, METHODS, ApproximateIndex, Method
from tercet.index.exact import ExactIndex
from tercet.records import Codes, Floats


def clustered(count: int, width: int = 24, seed: int = 3) -> Floats:
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((40, width))
    drawn = centres[chance.integers(40, size=count)] + 0.5 * chance.standard_normal((count, width))
    return np.float32(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def contexts(count: int, codes: int) -> Codes:
    return Codes(
        clustered(count * codes, seed=9).reshape(count, codes, -1), np.ones((count, codes), dtype=np.bool_)
    )


@pytest.fixture(scope="module", params=METHODS)
def method(request: pytest.FixtureRequest) -> Method:
    found: Method = request.param
    return found


@pytest.mark.parametrize("codes", [1, 8])
def test_it_finds_nearly_all_and_says_that_it_may_have_missed_some(method: Method, codes: int) -> None:
    vectors, asked = clustered(5000), contexts(20, codes)
    index, exact = ApproximateIndex(24, method=method), ExactIndex(24)
    for each in (index, exact):
        each.add(np.arange(5000), vectors)
    found, wanted = index.search(asked, 10, scale=10.0), exact.search(asked, 10, scale=10.0)
    shared = [len(set(a) & set(b)) for a, b in zip(found.ids.tolist(), wanted.ids.tolist(), strict=True)]
    assert np.mean(shared) >= 9.5
    assert set(found.certainty) == {"certified up to the index's recall"}
    assert found.scored.max() < 2500
    same = found.ids == wanted.ids
    assert found.scores[same].tolist() == wanted.scores[same].tolist()


def test_a_small_budget_is_kept_and_said(method: Method) -> None:
    index = ApproximateIndex(24, method=method, budget=50)
    index.add(np.arange(3000), clustered(3000))
    found = index.search(contexts(5, 8), 10, scale=0.1)
    assert set(found.certainty) == {"budget reached"}
    assert found.scored.max() < 1000


def test_it_grows_from_one_to_many_and_forgets_what_is_removed(method: Method) -> None:
    index, vectors = ApproximateIndex(24, method=method), clustered(3000)
    for start, end in ((0, 1), (1, 30), (30, 900), (900, 2000), (2000, 3000)):
        index.add(np.arange(start, end), vectors[start:end])
    index.remove(np.arange(0, 3000, 2))
    assert len(index) == 1500
    own = Codes(vectors[:200, None], np.ones((200, 1), dtype=np.bool_))
    found = index.search(own, 1).ids[:, 0]
    assert (found % 2 == 1).all()
    assert np.mean(found[1::2] == np.arange(1, 200, 2)) > 0.97
    index.remove(np.arange(1, 2001, 2))
    index.add(np.array([9000]), vectors[:1])  # so little is left that it begins again
    assert index.search(own, 1).ids[0, 0] == 9000


def test_a_loaded_index_finds_the_same(method: Method, tmp_path: Path) -> None:
    index, asked = ApproximateIndex(24, method=method), contexts(10, 4)
    index.add(np.arange(10, 3010), clustered(3000))
    index.remove(np.arange(10, 500))
    loaded = ApproximateIndex.load(index.save(tmp_path / "index"))
    assert len(loaded) == len(index)
    wanted, found = index.search(asked, 5), loaded.search(asked, 5)
    assert found.ids.tolist() == wanted.ids.tolist()
    loaded.add(np.array([77777]), asked.vectors[0, :1])
    assert 77777 in loaded.search(asked, 5, scale=50.0).ids
    empty = ApproximateIndex.load(ApproximateIndex(24, method=method).save(tmp_path / "empty"))
    assert empty.search(asked, 1).ids[0, 0] == -1


def test_a_structure_that_is_cut_short_is_named(method: Method, tmp_path: Path) -> None:
    index = ApproximateIndex(24, method=method)
    index.add(np.arange(3000), clustered(3000))
    file = index.save(tmp_path / "index") / FILE
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(BrokenIndexError, match=r"faiss\.index is not whole"):
        ApproximateIndex.load(tmp_path / "index")


def test_an_index_whose_vectors_were_all_removed_is_empty_and_can_be_saved(
    method: Method, tmp_path: Path
) -> None:
    index = ApproximateIndex(24, method=method)
    index.add(np.arange(2000), clustered(2000))
    index.remove(np.arange(2000))
    loaded = ApproximateIndex.load(index.save(tmp_path / "index"))
    for each in (index, loaded):
        assert each.search(contexts(1, 3), 4).ids.tolist() == [[-1] * 4]
        each.add(np.arange(5), clustered(5))
        assert len(each) == 5


def test_few_that_are_left_are_found(method: Method) -> None:
    index, vectors = ApproximateIndex(24, method=method), clustered(3000)
    index.add(np.arange(3000), vectors)
    index.remove(np.arange(20, 3000))
    for found in index.search(contexts(10, 2), 5).ids.tolist():
        assert len(set(found) & set(range(20))) == 5


def test_what_is_learnt_of_few_is_learnt_again_of_many(method: Method) -> None:
    index, exact = ApproximateIndex(24, method=method), ExactIndex(24)
    for each in (index, exact):
        each.add(np.arange(1000), 0.01 * clustered(1000))  # short ones, which would teach a wrong range
        each.add(np.arange(1000, 6000), clustered(5000, seed=4))
    asked = contexts(20, 1)
    found, wanted = index.search(asked, 10).ids.tolist(), exact.search(asked, 10).ids.tolist()
    assert np.mean([len(set(a) & set(b)) for a, b in zip(found, wanted, strict=True)]) >= 9.5

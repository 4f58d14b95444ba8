"""Jobs over all pairs, against doing it one pair at a time."""

import numpy as np
import pytest

from tercet.errors import InputError
from tercet.index import all_pairs
from tercet.index.all_pairs import best_pairs, communities, plane
from tercet.records import Floats


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_pairs, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(all_pairs, "COLUMNS_AT_ONCE", 11)


def unit(count: int, width: int = 4, seed: int = 0) -> Floats:
    drawn = np.random.default_rng(seed).standard_normal((count, width), dtype=np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [1, 5, 40, 10_000])
@pytest.mark.parametrize("threshold", [-np.inf, 0.9])
def test_the_best_pairs_are_those_of_all(count: int, threshold: float) -> None:
    vectors = np.concatenate([unit(40), unit(3), unit(20, seed=1)])  # three come twice
    products = vectors @ vectors.T
    every = [(i, j) for i in range(len(vectors)) for j in range(i + 1, len(vectors))]
    wanted = sorted(
        (pair for pair in every if products[pair] >= threshold), key=lambda pair: (-products[pair], pair)
    )[:count]
    told: list[int] = []
    found = best_pairs(vectors, count, threshold=threshold, on_progress=told.append)
    assert found.scores == pytest.approx([products[pair] for pair in wanted], abs=1e-6)
    assert set(zip(found.first[:3].tolist(), found.second[:3].tolist(), strict=True)) <= set(wanted)
    assert (found.first < found.second).all()
    assert sum(told) == len(vectors)


def test_communities_are_the_greedy_groups_around_centres() -> None:
    vectors = unit(60, 3)
    threshold = 0.8
    near = vectors @ vectors.T >= threshold
    free, wanted = set(range(60)), []
    for centre in sorted(range(60), key=lambda n: (-near[n].sum(), n)):
        members = [n for n in sorted(free) if near[centre, n]]
        if centre in free and len(members) >= 3:
            wanted.append([centre, *(n for n in members if n != centre)])
            free -= set(members)
    wanted.sort(key=lambda group: (-len(group), group[0]))
    assert len(wanted) > 3
    assert [group.tolist() for group in communities(vectors, threshold=threshold, smallest=3)] == wanted


def test_equal_vectors_are_one_community_and_strangers_none() -> None:
    vectors = np.float32([[1, 0], [1, 0], [0, 1], [1, 0]])
    assert [group.tolist() for group in communities(vectors, threshold=0.9)] == [[0, 1, 3]]
    assert len(communities(vectors, threshold=0.9, smallest=1)) == 2
    assert communities(vectors, threshold=1.5) == []


def test_one_vector_has_no_pair() -> None:
    assert len(best_pairs(unit(1), 5).scores) == 0
    with pytest.raises(InputError, match="count must be at least 1, got 0"):
        best_pairs(unit(3), 0)
    with pytest.raises(InputError, match="smallest must be at least 1, got 0"):
        communities(unit(3), threshold=0.5, smallest=0)


def test_a_plane_keeps_what_differs_the_most() -> None:
    chance = np.random.default_rng(0)
    drawn = chance.standard_normal((200, 2))
    spread = np.linalg.qr(drawn - drawn.mean(axis=0))[0] * [100.0, 30.0]  # which have nothing in common
    turn = np.linalg.qr(chance.standard_normal((5, 5)))[0]
    vectors = np.float32(np.concatenate([spread, 0.01 * chance.standard_normal((200, 3))], axis=1) @ turn)
    seen = plane(vectors)
    assert np.abs(np.corrcoef(seen[:, 0], spread[:, 0])[0, 1]) > 0.999
    assert np.abs(np.corrcoef(seen[:, 1], spread[:, 1])[0, 1]) > 0.999

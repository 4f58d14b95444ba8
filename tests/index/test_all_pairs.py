"""Computations over all pairs, compared with one pair at a time."""

from collections.abc import Callable

import numpy as np
import pytest

from tercet.errors import InputError
from tercet.index import all_pairs
from tercet.index.all_pairs import communities, nearest, pairs_above, plane, top_pairs
from tercet.records import Floats


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_pairs, "ROWS_PER_BLOCK", 7)
    monkeypatch.setattr(all_pairs, "COLUMNS_PER_BLOCK", 11)


def random_units(count: int, width: int = 4, seed: int = 0) -> Floats:
    vectors = np.random.default_rng(seed).standard_normal((count, width), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [1, 5, 40, 10_000])
@pytest.mark.parametrize("threshold", [-np.inf, 0.9])
def test_the_top_pairs_are_those_of_a_sort_of_all_pairs(count: int, threshold: float) -> None:
    vectors = np.concatenate([random_units(40), random_units(3), random_units(20, seed=1)])  # 3 duplicates
    products = vectors @ vectors.T
    pairs = [(i, j) for i in range(len(vectors)) for j in range(i + 1, len(vectors))]
    expected = sorted(
        (pair for pair in pairs if products[pair] >= threshold), key=lambda pair: (-products[pair], pair)
    )[:count]
    progress: list[int] = []
    top = top_pairs(vectors, count, threshold=threshold, on_progress=progress.append)
    assert top.scores == pytest.approx([products[pair] for pair in expected], abs=1e-6)
    assert set(zip(top.first[:3].tolist(), top.second[:3].tolist(), strict=True)) <= set(expected)
    assert (top.first < top.second).all()
    assert sum(progress) == len(vectors)


@pytest.mark.parametrize("threshold", [-np.inf, 0.5, 2.0])
def test_all_pairs_above_a_threshold_are_found(threshold: float) -> None:
    vectors = random_units(45)
    products = vectors @ vectors.T
    pairs = [(i, j) for i in range(45) for j in range(i + 1, 45) if products[i, j] >= threshold]
    found = pairs_above(vectors, threshold)
    assert sorted(zip(found.first.tolist(), found.second.tolist(), strict=True)) == pairs
    assert (np.diff(found.scores) <= 0).all()


def test_too_many_pairs_are_refused_before_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_pairs, "MAX_PAIRS", 100)
    assert len(pairs_above(random_units(14), -2.0).scores) == 91  # 14 · 13 / 2
    with pytest.raises(
        InputError, match="more than 100 pairs have a score of at least -2: raise the threshold"
    ):
        pairs_above(random_units(30), -2.0)


@pytest.mark.parametrize("find", [lambda v, t: top_pairs(v, 5, threshold=t), pairs_above])
def test_a_threshold_is_a_number(find: Callable[[Floats, float], object]) -> None:
    with pytest.raises(InputError, match="threshold must be a number, got float nan"):
        find(random_units(3), float("nan"))


def test_communities_are_the_greedy_groups_around_centres() -> None:
    vectors = random_units(60, 3)
    threshold = 0.8
    near = vectors @ vectors.T >= threshold
    free, expected = set(range(60)), []
    for centre in sorted(range(60), key=lambda n: (-near[n].sum(), n)):
        members = [n for n in sorted(free) if near[centre, n]]
        if centre in free and len(members) >= 3:
            expected.append([centre, *(n for n in members if n != centre)])
            free -= set(members)
    expected.sort(key=lambda group: (-len(group), group[0]))
    assert len(expected) > 3
    assert [group.tolist() for group in communities(vectors, threshold=threshold, min_size=3)] == expected


def test_equal_vectors_form_one_community_and_a_single_vector_none() -> None:
    vectors = np.float32([[1, 0], [1, 0], [0, 1], [1, 0]])
    assert [group.tolist() for group in communities(vectors, threshold=0.9)] == [[0, 1, 3]]
    assert len(communities(vectors, threshold=0.9, min_size=1)) == 2
    assert communities(vectors, threshold=1.5) == []


def test_one_vector_has_no_pair() -> None:
    assert len(top_pairs(random_units(1), 5).scores) == 0
    with pytest.raises(InputError, match="count must be at least 1, got 0"):
        top_pairs(random_units(3), 0)
    with pytest.raises(InputError, match="min_size must be at least 1, got 0"):
        communities(random_units(3), threshold=0.5, min_size=0)


@pytest.mark.parametrize("k", [1, 9, 40])
def test_the_nearest_neighbours_are_those_of_a_sort(k: int) -> None:
    vectors = random_units(40)
    products = vectors @ vectors.T
    positions = nearest(vectors, k)
    assert positions.shape == (40, k)
    assert positions[:, 0].tolist() == list(range(40))  # a unit vector is its own nearest neighbour
    expected = -np.sort(-products, axis=1)[:, :k]
    assert np.take_along_axis(products, positions, axis=1) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(InputError, match="k must be between 1 and the number of vectors, 40, got 41"):
        nearest(vectors, 41)


def test_the_plane_shows_the_two_directions_of_largest_variance() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((200, 2))
    spread = np.linalg.qr(drawn - drawn.mean(axis=0))[0] * [100.0, 30.0]  # uncorrelated
    rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    vectors = np.float32(np.concatenate([spread, 0.01 * rng.standard_normal((200, 3))], axis=1) @ rotation)
    projected = plane(vectors)
    assert np.abs(np.corrcoef(projected[:, 0], spread[:, 0])[0, 1]) > 0.999
    assert np.abs(np.corrcoef(projected[:, 1], spread[:, 1])[0, 1]) > 0.999

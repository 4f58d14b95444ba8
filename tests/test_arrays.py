"""Top-k selection and unit vectors: equal to a full stable sort, and to division by the norm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tercet.arrays import BlockTopK, kth_largest, top_k, unit_vectors
from tercet.records import Floats, Ints

FEW_VALUES = st.integers(-3, 3).map(float)
"""Scores with many ties."""

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 30))
TABLES = SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=FEW_VALUES))


def stable_order(scores: Floats) -> Ints:
    """``[N]``: positions by descending score; ties keep their order."""
    return np.array(sorted(range(len(scores)), key=lambda position: -scores[position]), dtype=np.int64)


def test_top_k_worked_out_by_hand() -> None:
    scores = np.array([1, 3, 3, 0, 3, 2], dtype=np.float32)
    assert top_k(scores, 2).tolist() == [1, 2]  # 3, 3: the third 3 comes later
    assert top_k(scores, 5).tolist() == [1, 2, 4, 5, 0]


@given(scores=arrays(np.float32, st.integers(0, 40), elements=FEW_VALUES), k=st.integers(1, 50))
def test_top_k_equals_a_full_stable_sort(scores: Floats, k: int) -> None:
    np.testing.assert_array_equal(top_k(scores, k), stable_order(scores)[:k])


@given(scores=arrays(np.float32, st.integers(0, 20), elements=FEW_VALUES), k=st.integers(1, 25))
def test_kth_largest_equals_a_full_sort(scores: Floats, k: int) -> None:
    expected = sorted(scores.tolist(), reverse=True)[k - 1] if k <= len(scores) else -np.inf
    assert kth_largest(scores, k) == expected


def top_k_over_blocks(table: Floats, k: int, width: int) -> BlockTopK:
    top = BlockTopK(len(table), k)
    for first in range(0, table.shape[1], width):
        top.offer(table[:, first : first + width], first=first)
    return top


@given(table=TABLES, k=st.integers(1, 8), width=st.integers(1, 12))
def test_top_k_over_blocks_equals_a_full_stable_sort(table: Floats, k: int, width: int) -> None:
    top = top_k_over_blocks(table, k, width)
    for row, scores in enumerate(table):
        expected = stable_order(scores)[:k]
        np.testing.assert_array_equal(top.columns[row, : len(expected)], expected)
        np.testing.assert_array_equal(top.scores[row, : len(expected)], scores[expected])


def test_top_k_over_fewer_columns_than_k_marks_the_missing_ones() -> None:
    top = top_k_over_blocks(np.array([[2.0, 5.0]], dtype=np.float32), k=3, width=2)
    assert top.columns.tolist() == [[1, 0, -1]]
    assert top.scores.tolist() == [[5, 2, -np.inf]]


def test_unit_vectors_worked_out_by_hand() -> None:
    vectors = np.array([[3, 4], [0, -2]], dtype=np.float32)
    np.testing.assert_allclose(unit_vectors(vectors), [[3 / 5, 4 / 5], [0, -1]], rtol=1e-6)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_unit_vectors_keep_zeros(shape: tuple[int, ...]) -> None:
    vectors = np.ones(shape, dtype=np.float32)
    vectors[0] = 0
    units = unit_vectors(vectors)
    assert units.dtype == np.float32
    np.testing.assert_array_equal(units[0], 0)
    np.testing.assert_allclose(np.linalg.norm(units[1:], axis=-1), 1, rtol=1e-6)


def test_only_vectors_shorter_than_1e_12_keep_less_than_unit_length() -> None:
    vectors = np.array([[1.5e-12, 0], [0.5e-12, 0]])
    np.testing.assert_allclose(unit_vectors(vectors), [[1, 0], [0.5, 0]])

"""The data as a weighted measure: repetitions, order, zeros and unknown targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from distreduce.sharding.merge import merge_duplicates

ROWS = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=st.sampled_from([-1.0, -0.0, 0.0, 2.5]))


def content(X, merged):
    return np.c_[X[merged.rows] + 0.0, merged.weights]


@given(X=ROWS)
def test_groups_are_the_distinct_rows(X):
    merged = merge_duplicates(X, None, np.ones(len(X)))
    distinct, counts = np.unique(X + 0.0, axis=0, return_counts=True)
    assert len(merged.rows) == len(distinct)
    np.testing.assert_array_equal(X[merged.rows][merged.group] + 0.0, X + 0.0)
    assert sorted(merged.weights) == sorted(counts)


@given(X=ROWS, seed=st.integers(0, 1000))
def test_order_of_the_rows_does_not_matter(X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    first, second = merge_duplicates(X, None, np.ones(len(X))), merge_duplicates(X[order], None, np.ones(len(X)))
    assert content(X, first).tobytes() == content(X[order], second).tobytes()
    np.testing.assert_array_equal(first.group[order], second.group)


def test_order_does_not_matter_for_uneven_weights(rng):
    """Sums of weights that are no whole numbers depend on their order, unless they are added in a fixed one."""
    X = rng.integers(3, size=(60, 1)).astype(float)
    weights = rng.uniform(0.1, 1.0, 60)
    order = rng.permutation(60)
    first, second = merge_duplicates(X, None, weights), merge_duplicates(X[order], None, weights[order])
    assert first.weights.tobytes() == second.weights.tobytes()


def test_a_repetition_is_a_weight(rng):
    X = rng.normal(size=(6, 2))
    repeated = X[[0, 0, 1, 2, 2, 2, 3, 4, 5]]
    weighted = merge_duplicates(X, None, np.array([2.0, 1, 3, 1, 1, 1]))
    assert content(X, weighted).tobytes() == content(repeated, merge_duplicates(repeated, None, np.ones(9))).tobytes()


def test_equal_inputs_with_different_targets_stay_apart():
    X, Y = np.zeros((4, 1)), np.array([[1.0], [2.0], [1.0], [np.nan]])
    merged = merge_duplicates(X, Y, np.ones(4))
    assert len(merged.rows) == 3 and merged.group[0] == merged.group[2]


def test_unknown_targets_are_one_target():
    """NaN differs from itself, and comes in many bit patterns."""
    other = np.frombuffer(np.array([0x7FF8000000000123], dtype=np.int64).tobytes(), dtype=np.float64)[0]
    merged = merge_duplicates(np.zeros((2, 1)), np.array([[np.nan], [other]]), np.ones(2))
    assert len(merged.rows) == 1 and merged.weights.tolist() == [2.0]


def test_minus_zero_is_zero():
    merged = merge_duplicates(np.array([[0.0], [-0.0]]), np.array([[-0.0], [0.0]]), np.ones(2))
    assert len(merged.rows) == 1


def test_rows_of_weight_zero_are_left_out():
    merged = merge_duplicates(np.array([[1.0], [2.0], [1.0]]), None, np.array([0.0, 1.0, 3.0]))
    assert merged.group[0] == -1 and sorted(merged.rows) == [1, 2] and sorted(merged.weights) == [1.0, 3.0]


@given(X=ROWS)
def test_sparse_rows_are_grouped_like_dense_ones(X):
    dense = merge_duplicates(X, None, np.ones(len(X)))
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        S = kind(X)
        S = S if hasattr(S, "__getitem__") else S.tocsr()
        found = merge_duplicates(S, None, np.ones(len(X)))
        np.testing.assert_array_equal(found.group[:, None] == found.group, dense.group[:, None] == dense.group)


@given(X=ROWS, seed=st.integers(0, 1000))
def test_sparse_order_does_not_matter(X, seed):
    order = np.random.default_rng(seed).permutation(len(X))
    first = merge_duplicates(sparse.csr_array(X), None, np.ones(len(X)))
    second = merge_duplicates(sparse.csr_array(X[order]), None, np.ones(len(X)))
    assert content(X, first).tobytes() == content(X[order], second).tobytes()


def test_sparse_entries_that_are_stored_zeros_or_unsorted_do_not_matter():
    stored = sparse.csr_array((np.array([0.0, 3.0, 3.0]), np.array([1, 0, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert len(merge_duplicates(stored, None, np.ones(2)).rows) == 1


def test_distances_stay_apart_and_in_their_order():
    merged = merge_duplicates(np.zeros((3, 3)), None, np.array([1.0, 0.0, 2.0]), precomputed=True)
    assert merged.rows.tolist() == [0, 2] and merged.group.tolist() == [0, -1, 1]


def test_trivial_says_whether_anything_happened():
    X = np.array([[2.0], [1.0]])
    assert merge_duplicates(X, None, np.ones(2)).trivial
    assert not merge_duplicates(X[[0, 0]], None, np.ones(2)).trivial


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_other_types_of_number(dtype):
    X = np.array([[1, 0], [0, 1], [1, 0]]).astype(dtype)
    assert merge_duplicates(X, None, np.ones(3)).weights.tolist() in ([1.0, 2.0], [2.0, 1.0])

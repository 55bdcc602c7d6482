"""The data as a weighted measure: repetitions, order, zeros, unknown targets; whole cells in shards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from distreduce._utils.threads import SERIAL, Workers
from distreduce.sharding import cells
from distreduce.sharding import merge as arrangement
from distreduce.sharding.merge import (
    merge_by_key,
    merge_duplicates,
    row_keys,
    shard_bounds,
    split_large_cells,
)
from distreduce.sharding.rows import LocalRows
from distreduce.sharding.shards import shard_count

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


@pytest.fixture
def many_cells(monkeypatch):
    monkeypatch.setattr(cells, "EXACT_ROWS", 1000)
    monkeypatch.setattr(cells, "ROWS_PER_CELL", 200)
    monkeypatch.setattr(cells, "SEARCHED_ROWS", 500)


def arranged(X, Y=None, weights=None, workers=SERIAL):
    rows, weights = LocalRows(X, workers), np.ones(X.shape[0]) if weights is None else weights
    return rows.arrange(rows.merge(Y, weights), 1.0, np.random.RandomState(0))


@pytest.fixture
def table(rng):
    return np.where(rng.random((5000, 3)) < 0.8, rng.normal(size=(5000, 3)), 0.0)


@pytest.mark.parametrize(
    "store", [np.float32, np.asfortranarray, sparse.csr_array, lambda X: sparse.csr_matrix(X, dtype=np.float32)]
)
def test_keys_depend_on_the_numbers_not_on_their_storage(rng, store):
    X = rng.integers(-2, 3, size=(40, 3)).astype(float)
    np.testing.assert_array_equal(row_keys(store(X)), row_keys(X))


def test_keys_of_a_block_are_those_of_its_rows(table):
    np.testing.assert_array_equal(row_keys(table[100:200]), row_keys(table)[100:200])


def test_unsorted_repeated_and_stored_zero_entries_do_not_matter():
    stored = sparse.csr_array(
        (np.array([0.0, 3.0, 1.0, 2.0]), np.array([1, 0, 0, 0]), np.array([0, 2, 4])), shape=(2, 2)
    )
    keys = row_keys(stored)
    np.testing.assert_array_equal(keys[0], keys[1])


def test_signs_of_zero_and_kinds_of_nan_do_not_matter():
    other = np.array([0x7FF8000000000123], dtype=np.int64).view(np.float64)[0]
    keys = row_keys(np.array([[0.0, np.nan], [-0.0, other]]))
    np.testing.assert_array_equal(keys[0], keys[1])


def test_permuted_numbers_have_other_keys():
    keys = row_keys(np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]))
    assert len(np.unique(keys)) == keys.size


def test_keys_of_two_tables_are_those_of_one(table):
    np.testing.assert_array_equal(row_keys(table[:, :2]) + row_keys(table[:, 2:], 2), row_keys(table))


def test_each_lane_is_uniform():
    """Keys of consecutive numbers fill 64 boxes evenly, by high and by low bits (chi² below its 1 − 1e-6 quantile)."""
    keys = row_keys(np.arange(1.0, 20_001.0)[:, None])
    boxes = [part % np.uint64(64) for lane in keys.T for part in (lane, lane >> np.uint64(58))]
    chi2 = [((np.bincount(box.astype(int), minlength=64) - 312.5) ** 2 / 312.5).sum() for box in boxes]
    assert max(chi2) < 132


def test_groups_are_those_of_merge_duplicates(rng):
    X, Y = rng.integers(3, size=(200, 2)).astype(float), rng.choice([0.0, 1.0, np.nan], size=(200, 1))
    weights = rng.choice([0.0, 0.3, 1.7], size=200)
    merged, expected = merge_by_key(row_keys(X) + row_keys(Y, 2), weights), merge_duplicates(X, Y, weights)
    np.testing.assert_array_equal(merged.group[:, None] == merged.group, expected.group[:, None] == expected.group)


def test_merged_weights_do_not_depend_on_the_order(rng):
    X, weights, order = rng.integers(3, size=(60, 1)).astype(float), rng.uniform(0.1, 1.0, 60), rng.permutation(60)
    first, second = merge_by_key(row_keys(X), weights), merge_by_key(row_keys(X[order]), weights[order])
    assert first.weights.tobytes() == second.weights.tobytes()


def test_arrangements_leave_rows_of_weight_zero_out():
    merged = merge_by_key(row_keys(np.array([[1.0], [2.0], [1.0]])), np.array([0.0, 1.0, 3.0]))
    assert merged.group[0] == -1 and sorted(merged.rows) == [1, 2] and sorted(merged.weights) == [1.0, 3.0]


def test_samples_are_in_the_order_of_their_keys(table):
    keys = row_keys(table)
    ordered = keys[merge_by_key(keys, np.ones(5000)).rows]
    assert [tuple(key) for key in ordered] == sorted({tuple(key) for key in keys})


def test_groups_of_an_arrangement_lead_to_the_rows(table, many_cells):
    X = np.vstack([table, table[:50]])
    merged = arranged(X).merged
    np.testing.assert_array_equal(X[merged.rows][merged.group], X)


def test_rows_without_weight_stay_out_of_an_arrangement(table, many_cells):
    weights = np.ones(5000)
    weights[:100] = 0.0
    merged = arranged(table, weights=weights).merged
    assert (merged.group[:100] == -1).all() and (merged.group[100:] >= 0).all()


def test_arranged_repetitions_are_weights(rng, many_cells):
    X, twice = rng.normal(size=(3000, 3)), rng.integers(1, 3, size=3000)
    repeated, weighted = arranged(np.repeat(X, twice, axis=0)), arranged(X, weights=twice.astype(float))
    content = [
        np.c_[data[one.merged.rows], one.merged.weights, one.cells]
        for data, one in ((np.repeat(X, twice, axis=0), repeated), (X, weighted))
    ]
    assert content[0].tobytes() == content[1].tobytes()


def test_order_and_threads_do_not_change_the_arrangement(table, rng, many_cells):
    X = table[rng.permutation(5000)]
    first, second = arranged(table), arranged(X, workers=Workers(3))
    assert (
        table[first.merged.rows].tobytes() + first.cells.tobytes()
        == X[second.merged.rows].tobytes() + second.cells.tobytes()
    )


def test_sparse_rows_are_arranged_as_dense_ones(table, many_cells):
    np.testing.assert_array_equal(arranged(sparse.csr_array(table)).merged.rows, arranged(table).merged.rows)


def test_drawn_samples_do_not_depend_on_the_cells(table, many_cells, monkeypatch):
    first = arranged(table)
    monkeypatch.setattr(cells, "EXACT_ROWS", 10_000)
    second = arranged(table)
    np.testing.assert_array_equal(first.merged.rows[first.random_order], second.merged.rows[second.random_order])


def test_samples_lie_in_the_cell_of_the_nearest_centre(table, many_cells):
    one = arranged(table)
    distances = ((table[one.merged.rows][:, None] - one.probes.centres) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances[np.arange(len(distances)), one.cells], distances.min(axis=1), rtol=1e-12)


def test_shards_hold_whole_cells(table, many_cells):
    one = arranged(table)
    inner = one.bounds[1:-1]
    assert len(one.bounds) == shard_count(len(one.cells)) + 1 and (one.cells[inner - 1] < one.cells[inner]).all()


def test_a_single_cell_is_cut_into_equal_shards():
    assert np.diff(shard_bounds(np.zeros(9000, np.int32))).tolist() == [2250] * 4


def test_no_shard_is_empty_with_the_largest_cells():
    found, _ = split_large_cells(np.repeat(np.arange(2), [1, 149_999]).astype(np.int32), 2)
    assert np.diff(shard_bounds(found)).min() > 0


def test_large_cells_are_divided_evenly(monkeypatch):
    monkeypatch.setattr(arrangement, "LARGEST_CELL", 4)
    found, pieces = split_large_cells(np.array([0, 0, 2, 2, 2, 2, 2, 2, 2], dtype=np.int32), 3)
    assert (found.tolist(), pieces.tolist()) == ([0, 0, 1, 1, 1, 1, 2, 2, 2], [1, 0, 2])

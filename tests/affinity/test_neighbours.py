"""Neighbours: exact in one cell, what the searched cells hold in many; a graph that is symmetric to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from distreduce._utils.threads import SERIAL, Workers
from distreduce.affinity.neighbours import _shards_in_reach, keep_neighbours, whole_graph
from distreduce.sharding import cells
from distreduce.sharding.cells import Candidates, choose_candidates
from distreduce.sharding.rows import LocalRows
from distreduce.sharding.shards import local_shards

K = 12


def mixture(rng, n=5000, d=8):
    return rng.normal(size=(30, d))[rng.integers(30, size=n)] * 2 + rng.normal(size=(n, d))


def arrange(X, Y=None, workers=SERIAL):
    rows = LocalRows(X, workers)
    return rows.arrange(rows.merge(Y, np.ones(X.shape[0])), 1.0, np.random.RandomState(0))


def cut(X, arrangement, workers=SERIAL):
    parts = {"features": X[arrangement.merged.rows], "cells": arrangement.cells}
    return local_shards(parts, workers, arrangement.bounds)


def graph(X, k=K, workers=SERIAL):
    """The arrangement of the rows and the graph over it."""
    arrangement = arrange(X, workers=workers)
    shards = cut(X, arrangement, workers)
    keep_neighbours(shards, k, arrangement.probes)
    return arrangement, whole_graph(shards)


def symmetric(distances, lists, n):
    """The graph of the neighbours in `lists`, by definition."""
    expected = np.full((n, n), np.nan)
    for i, row in enumerate(lists):
        expected[i, row] = expected[row, i] = distances[i, row]
    np.fill_diagonal(expected, 0.0)
    return expected


def dense(found):
    out = np.full(found.shape, np.nan)
    rows, columns = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)), found.indices
    out[rows, columns] = found.data
    return out


def recall(X):
    """Share of the true neighbours that the graph links."""
    arrangement, found = graph(X)
    truth = NearestNeighbors(n_neighbors=K).fit(X[arrangement.merged.rows]).kneighbors_graph()
    linked = sparse.csr_array((np.ones(found.nnz), found.indices, found.indptr), shape=found.shape)
    return truth.multiply(linked).sum() / truth.nnz


@pytest.fixture
def many_cells(monkeypatch):
    """Cells and a choice among them for a few thousand samples."""
    monkeypatch.setattr(cells, "EXACT_ROWS", 500)
    monkeypatch.setattr(cells, "ROWS_PER_CELL", 100)
    monkeypatch.setattr(cells, "SEARCHED_ROWS", 600)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_cell_is_searched_exactly(rng, dtype):
    X = mixture(rng).astype(dtype)
    arrangement, found = graph(X)
    Z = X[arrangement.merged.rows].astype(np.float64)
    lists = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(Z).kneighbors(return_distance=False)
    expected = sparse.csr_array((np.ones(len(Z) * K), lists.ravel(), np.arange(len(Z) + 1) * K))
    expected = ((expected + expected.T + sparse.eye_array(len(Z))) > 0).sorted_indices()
    np.testing.assert_array_equal(found.indices, expected.indices)


def test_values_are_squared_distances(rng):
    X = mixture(rng, 800)
    arrangement, found = graph(X)
    D = cdist(X[arrangement.merged.rows], X[arrangement.merged.rows], "sqeuclidean")
    expected = symmetric(D, np.argsort(D + np.diag(np.full(800, np.inf)), axis=1)[:, :K], 800)
    np.testing.assert_allclose(dense(found), expected, rtol=1e-6)


def test_tight_groups_far_from_each_other_are_searched_exactly(rng):
    """Distances of 1e-5 between samples at ±1 are beyond what float32 products can tell apart."""
    X = np.repeat([[1.0, 1.0], [-1.0, 1.0]], 200, axis=0) + 1e-5 * rng.normal(size=(400, 2))
    arrangement, found = graph(X)
    D = cdist(X[arrangement.merged.rows], X[arrangement.merged.rows], "sqeuclidean")
    expected = symmetric(D, np.argsort(D + np.diag(np.full(400, np.inf)), axis=1)[:, :K], 400)
    np.testing.assert_array_equal(np.isnan(dense(found)), np.isnan(expected))


def test_samples_find_the_nearest_of_their_candidates(rng, many_cells):
    X = mixture(rng, 3000)
    arrangement, found = graph(X)
    Z = X[arrangement.merged.rows]
    D, lists = cdist(Z, Z, "sqeuclidean"), []
    indptr, rows = choose_candidates(Z, arrangement.cells, arrangement.probes)
    for i, cell in enumerate(arrangement.cells):
        candidates = np.setdiff1d(rows[indptr[cell] : indptr[cell + 1]], [i])
        lists.append(candidates[D[i, candidates].argsort()[:K]])
    np.testing.assert_array_equal(np.isnan(dense(found)), np.isnan(symmetric(D, lists, len(Z))))


def test_wide_groups_lose_few_neighbours(rng, many_cells):
    """Cells near a sample's own found 0.85 of them: in many dimensions, those near the middle are near everybody."""
    X = 0.7 * rng.normal(size=(5, 30))[rng.integers(5, size=5000)] + rng.normal(size=(5000, 30))
    assert recall(X) > 0.9


def test_shards_see_each_other_both_ways():
    """Cells 0 and 1 lie in shard 0, cell 2 in shard 1, cell 3 in shard 2, which has candidates for cell 1."""
    shards = local_shards({"cells": np.array([0, 1, 1, 2, 3, 3], np.int32)}, bounds=np.array([0, 3, 4, 6]))
    counts = [[1, 2, 0, 0], [0, 0, 1, 0], [0, 1, 0, 2]]
    shards.put("searched", [Candidates(np.r_[0, np.cumsum(count)], None) for count in counts])
    assert _shards_in_reach(shards) == [[0, 2], [1], [0, 2]]


def test_cells_miss_few_neighbours(rng, many_cells):
    assert recall(mixture(rng)) > 0.95


def test_both_ends_of_a_link_hold_the_same_bits(rng, many_cells):
    found = graph(mixture(rng))[1]
    other = sparse.csr_array(found.T.tocsr())
    assert (found.indices.tobytes(), found.data.tobytes()) == (other.indices.tobytes(), other.data.tobytes())


def test_every_sample_is_linked_to_itself(rng, many_cells):
    found = graph(mixture(rng))[1]
    own = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)) == found.indices
    assert own.sum() == found.shape[0] and not found.data[own].any()


def test_threads_do_not_change_a_bit(rng, many_cells):
    X = mixture(rng)
    first, second = graph(X)[1], graph(X, workers=Workers(3))[1]
    assert (first.indices.tobytes(), first.data.tobytes()) == (second.indices.tobytes(), second.data.tobytes())


def test_the_order_of_the_rows_does_not_change_a_bit(rng, many_cells):
    X = mixture(rng)
    first, second = graph(X)[1], graph(X[rng.permutation(len(X))])[1]
    assert (first.indices.tobytes(), first.data.tobytes()) == (second.indices.tobytes(), second.data.tobytes())


def test_repeated_rows_do_not_change_a_bit(rng, many_cells):
    X = mixture(rng)
    first, second = graph(X)[1], graph(np.vstack([X, X[:100]]))[1]
    assert (first.indices.tobytes(), first.data.tobytes()) == (second.indices.tobytes(), second.data.tobytes())


def test_sparse_rows_have_the_graph_of_dense_ones(rng, many_cells):
    X = mixture(rng, 3000) * (rng.random((3000, 8)) < 0.7)
    first, second = graph(X)[1], graph(sparse.csr_array(X))[1]
    assert (first.indices.tobytes(), first.data.tobytes()) == (second.indices.tobytes(), second.data.tobytes())


def test_equal_features_with_different_targets_are_neighbours(rng, many_cells):
    """More equal rows than a sample is compared with: all links have the distance zero."""
    X, Y = np.zeros((5000, 2)), rng.normal(size=(5000, 1))
    arrangement = arrange(X, Y)
    shards = cut(X, arrangement)
    keep_neighbours(shards, K, arrangement.probes)
    found = whole_graph(shards)
    assert not found.data.any() and np.diff(found.indptr).min() >= K + 1


def test_many_equal_rows_are_neighbours_in_turn(rng):
    """With the first numbers as neighbours of all, rows and columns of the affinity could not have the same mass."""
    X = np.vstack([np.zeros((300, 4)), 10.0 + rng.normal(size=(200, 4))])
    arrangement = arrange(X, np.arange(500.0)[:, None])
    shards = cut(X, arrangement)
    keep_neighbours(shards, K, arrangement.probes)
    found = whole_graph(shards)
    equal = (X[arrangement.merged.rows] == 0).all(axis=1)
    assert (np.diff(found.indptr)[equal] == 2 * K + 1).all()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_samples_are_all_linked(rng, n):
    found = graph(rng.normal(size=(n, 3)), k=10)[1]
    assert found.nnz == n * n


def test_the_directed_lists_are_dropped(rng):
    X = mixture(rng, 100)
    arrangement = arrange(X)
    shards = cut(X, arrangement)
    keep_neighbours(shards, K, arrangement.probes)
    assert set(shards._parts[0]) == {"features", "cells", "graph"}

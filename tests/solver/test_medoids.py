"""Samples that stand for prototypes, against the definition by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import distreduce.solver.medoids
from distreduce import SDR
from distreduce.coupling.problem import column_mass
from distreduce.dependence import prototype_means
from distreduce.solver.medoids import (
    distances_to_means,
    distances_within,
    medoids,
    nearest_members,
    prototype_sums,
)


@pytest.fixture
def soft():
    """Points, and a plan that shares some of them among prototypes, of which the last is empty."""
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(40, 3)), np.zeros((40, 5))
    T[np.arange(40), rng.integers(4, size=40)] = 1.0
    T[::5, 1] += 0.5
    return X, sparse.csr_array(T)


def brute_force(X, T, Y=None):
    """For each prototype in use the member with the least |x − x̄|²/V_x + |y − ȳ|²/V_y."""
    cost = sum(deviations(part, T) for part in ((X,) if Y is None else (X, Y)))
    return np.array([np.flatnonzero(t)[cost[t > 0, k].argmin()] if t.any() else -1 for k, t in enumerate(T.T)])


def deviations(X, T):
    """|x_i − x̄_k|² in units of its mean over T."""
    found = np.zeros(T.shape)
    for k in np.flatnonzero(T.any(axis=0)):
        found[:, k] = ((X - np.average(X, axis=0, weights=T[:, k])) ** 2).sum(axis=1)
    return found / ((T * found).sum() / T.sum() or 1.0)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("numbers", [1, 4_000_000])
def test_medoids_of_features(soft, monkeypatch, as_sparse, numbers):
    monkeypatch.setattr(distreduce.solver.medoids, "BLOCK_NUMBERS", numbers)
    X, T = soft
    rows = sparse.csr_array(X) if as_sparse else X
    means = prototype_means(prototype_sums(rows, T), column_mass(T))
    np.testing.assert_array_equal(nearest_members(T, distances_to_means(rows, T, means)), brute_force(X, T.toarray()))


def test_medoids_of_distances_are_those_of_the_features(soft):
    X, T = soft
    np.testing.assert_array_equal(nearest_members(T, distances_within(cdist(X, X), T)), brute_force(X, T.toarray()))


@pytest.mark.parametrize("by_distances", [False, True])
def test_targets_count_as_much_as_features(soft, by_distances):
    X, T = soft
    Y = np.random.default_rng(1).normal(size=(40, 2))
    found = medoids(cdist(X, X), T, Y, precomputed=True) if by_distances else medoids(X, T, Y)
    np.testing.assert_array_equal(found, brute_force(X, T.toarray(), Y))
    assert (found != brute_force(X, T.toarray())).any()


def test_a_sample_of_unknown_target_is_as_far_as_the_others_on_average():
    X, T = np.array([[0.0], [1.0], [2.0]]), sparse.csr_array(np.ones((3, 1)))
    # The second is nearest by features; by known targets the first and the third are far from each other.
    assert medoids(X, T, np.array([[0.0], [np.nan], [5.0]])).tolist() == [1]
    assert medoids(X, T, np.array([[0.0], [5.0], [0.0]])).tolist() != [1]


def test_of_equally_near_samples_the_first_stands():
    T = sparse.csr_array(np.ones((3, 1)))
    assert nearest_members(T, np.array([2.0, 1.0, 1.0])).tolist() == [1]


@pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")  # with some NumPy
def test_dense_and_sparse_fits_choose_by_the_same_rule(monkeypatch):
    monkeypatch.setattr("distreduce.estimators._fitted.CROWDED", 0.0)  # merged ones keep the medoid of the heavier
    X, y = load_digits(return_X_y=True)
    model = SDR(n_prototypes=30, affinity="sparse", max_iter=3, random_state=0).fit(X[:900], y[:900])
    T = model.coupling_.toarray()
    used = np.count_nonzero(T, axis=0) > 2  # two are equally near to their mean
    expected = brute_force(X[:900] / model.map_.unit, T, np.eye(10)[y[:900]])
    np.testing.assert_array_equal(model.prototype_medoids_[used], expected[used])


def test_copies_that_stand_for_themselves_are_their_own_medoids():
    X = np.repeat(np.random.default_rng(1).normal(size=(15, 2)), 2, axis=0)
    model = SDR(max_iter=0, task="regression", random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.prototype_medoids_, np.arange(30))


def test_twenty_medoids_are_worth_more_than_twenty_random_rows_of_each_class():
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X / 16, y, stratify=y, random_state=0)
    rows = SDR(n_prototypes=20, random_state=0).fit(X, y).prototype_medoids_
    rng = np.random.default_rng(0)
    chance = [np.concatenate([rng.choice(np.flatnonzero(y == c), 2) for c in range(10)]) for _ in range(10)]

    def accuracy(chosen):
        return KNeighborsClassifier(1).fit(X[chosen], y[chosen]).score(X_new, y_new)

    assert accuracy(rows) > max(map(accuracy, chance))

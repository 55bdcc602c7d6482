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
from distreduce.solver.medoids import (
    distances_to_means,
    distances_within,
    nearest_members,
    prototype_means,
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


def brute_force(X, T):
    """For each prototype in use the member with the least |x − x̄|."""
    found = []
    for k in range(T.shape[1]):
        members = np.flatnonzero(T[:, k])
        mean = np.average(X[members], axis=0, weights=T[members, k]) if len(members) else None
        found.append(-1 if mean is None else members[((X[members] - mean) ** 2).sum(axis=1).argmin()])
    return np.array(found)


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


def test_of_equally_near_samples_the_first_stands():
    T = sparse.csr_array(np.ones((3, 1)))
    assert nearest_members(T, np.array([2.0, 1.0, 1.0])).tolist() == [1]


@pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")  # with some NumPy
def test_dense_and_sparse_fits_choose_by_the_same_rule():
    X, y = load_digits(return_X_y=True)
    model = SDR(n_prototypes=30, affinity="sparse", max_iter=3, random_state=0).fit(X[:900], y[:900])
    T = model.coupling_.toarray()
    used = np.count_nonzero(T, axis=0) > 2  # two are equally near to their mean
    np.testing.assert_array_equal(model.prototype_medoids_[used], brute_force(X[:900], T)[used])


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

"""Which samples are left out together, and which part of their weight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distreduce.kernels import RBF
from distreduce.mapping.folds import Folds, are_copies, assign_folds, find_sites, leave_out


def test_copies_are_left_out_together():
    sites = np.repeat(np.arange(30), 2)
    folds = assign_folds(sites, np.ones(60), np.repeat(np.arange(30.0), 2)[:, None], np.ones(60, int))
    np.testing.assert_array_equal(folds.fold[::2], folds.fold[1::2])
    assert set(np.bincount(folds.fold)) == {12}


def test_repeated_measurements_leave_one_by_one(rng):
    """Three different x and two classes: 6 samples of weight 50."""
    folds = assign_folds(np.repeat(np.arange(3), 2), np.full(6, 50.0), np.tile(np.eye(2), (3, 1)), np.full(6, 50))
    np.testing.assert_allclose(np.bincount(folds.sample, folds.weights), 50.0)
    np.testing.assert_allclose(np.bincount(folds.fold, folds.weights), 60.0, atol=25.0)
    np.testing.assert_allclose(folds.weights, np.round(folds.weights))
    # Numbers differ, so each leaves as a whole.
    numbers = assign_folds(np.repeat(np.arange(3), 20), np.ones(60), rng.normal(size=(60, 1)), np.ones(60, int))
    np.testing.assert_array_equal(numbers.sample, np.arange(60))
    assert all(len(np.unique(numbers.fold[20 * k : 20 * k + 20])) > 1 for k in range(3))


def test_few_repeated_measurements_leave_together(rng):
    """Each would know the others, and their mean place would know them all: prototypes said 0.60, new samples 0.42."""
    sites = np.r_[np.repeat(np.arange(20), 3), np.full(12, 20)]
    folds = assign_folds(sites, np.ones(72), rng.normal(size=(72, 1)), np.ones(72, int))
    assert all(len(np.unique(folds.fold[sites == k])) == 1 for k in range(20))
    assert len(np.unique(folds.fold[sites == 20])) > 2


def test_groups_leave_as_a_whole(rng):
    groups = rng.integers(10, size=50)
    folds = assign_folds(np.arange(50) % 7, np.ones(50), rng.normal(size=(50, 1)), np.ones(50, int), groups)
    assert all(len(np.unique(folds.fold[groups == g])) == 1 for g in range(10))


@pytest.mark.parametrize(("share", "expected"), [(0.0, True), (0.1, True), (0.9, False), (1.0, False)])
def test_copies_agree_in_y(share, expected, rng):
    y = rng.normal(size=100)
    again = np.where(rng.random(100) < share, rng.normal(size=100), y)
    sites, targets = np.tile(np.arange(100), 2), np.r_[y, again][:, None]
    assert are_copies(sites, np.ones(200), targets) is expected


def test_a_rare_class_by_chance_is_no_copy(rng):
    """Of independent labels with 3 % in one class most pairs agree, whatever x is."""
    y = np.eye(2)[(rng.random(500) < 0.03).astype(int)]
    assert not are_copies(rng.integers(5, size=500), np.ones(500), y)


@given(st.integers(0, 10_000))
def test_rows_count_however_they_are_merged(seed):
    rng = np.random.default_rng(seed)
    sites, y, counts = rng.integers(5, size=15), rng.integers(3, size=(15, 1)).astype(float), rng.integers(1, 4, 15)
    rows = np.repeat(np.arange(15), counts)
    assert are_copies(sites, counts, y) == are_copies(sites[rows], np.ones(len(rows)), y[rows])


def test_rows_of_unequal_weight_leave_together(rng):
    """In parts, a row of weight four would tell its own target: displayed 0.62, new rows 0.32."""
    sites, y = np.repeat(np.arange(5), 12), rng.normal(size=(60, 1))
    folds = assign_folds(sites, rng.choice([1.0, 4.0], size=60), y, np.ones(60, int))
    assert all(len(np.unique(folds.fold[sites == k])) == 1 for k in range(5))
    alike = assign_folds(sites, np.full(60, 0.3), y, np.ones(60, int))
    assert all(len(np.unique(alike.fold[sites == k])) > 1 for k in range(5))


def test_parts_are_kept_renumbered_and_averaged():
    folds = Folds(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0]), np.array([1.0, 3.0, 2.0, 5.0]), np.array([4, 7, 7]))
    assert folds.numbers == [0, 1]
    assert [part.tolist() for part in folds.rest(0)] == [[0, 1], [3.0, 2.0]]
    assert folds.without(0).sample.tolist() == [0, 1]
    taken = folds.take(np.array([0, 2]))
    assert (taken.sample.tolist(), taken.fold.tolist()) == ([0, 0, 1], [0, 1, 0])
    values = np.array([[1.0], [5.0], [7.0], [0.0]])
    # Samples 1 and 2 share a site, and so their value.
    np.testing.assert_allclose(folds.average(values)[:, 0], [4.0, 2.0, 2.0])


def test_sites_of_distances_are_those_of_features(rng):
    X = rng.normal(size=(8, 2))[rng.integers(8, size=20)]
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    of_features, of_distances = find_sites(X), find_sites(D, precomputed=True)
    np.testing.assert_array_equal(of_features[:, None] == of_features, of_distances[:, None] == of_distances)


def test_equal_features_are_left_out_in_closed_form_as_by_refits(rng):
    """Sites of one, three, and twelve measurements: alone, together, and fold by fold with the mean of what is said."""
    sites = np.r_[np.arange(12), np.repeat([12, 13], 3), np.full(12, 14)]
    X, F, h = rng.normal(size=(15, 2))[sites], rng.normal(size=(30, 2)), np.full(30, 1.5)
    folds, K, ridge = assign_folds(sites, h, rng.normal(size=(30, 1)), np.ones(30, int)), RBF(0.7)(X), 0.8

    def predict(i, kept):  # kernel ridge regression with the weights h
        A = K[np.ix_(kept, kept)] + np.diag(ridge / h[kept])
        return K[i, kept] @ np.linalg.solve(A, F[kept])

    hat = np.linalg.solve(K + np.diag(ridge / h), K).T
    found = leave_out(F, hat @ F, hat.diagonal(), folds)
    for i in (0, 11):
        np.testing.assert_allclose(found[i], predict(i, np.arange(30) != i), rtol=1e-9)
    for site in (12, 13):
        np.testing.assert_allclose(found[sites == site], np.tile(predict(3 * site - 24, sites != site), (3, 1)))
    own = folds.fold[18:]
    means = [predict(18, ~((sites == 14) & (folds.fold == k))) for k in own]
    np.testing.assert_allclose(found[18:], np.tile(np.mean(means, axis=0), (12, 1)))
    assert len(set(own)) > 2

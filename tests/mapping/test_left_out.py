"""The left-out embedding against maps that were fitted again without the samples in question."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from distreduce.kernels import RBF
from distreduce.mapping import MapRegression, left_out_embedding
from distreduce.mapping.folds import Folds
from distreduce.mapping.left_out import align, cross_fitted, lay_over, share_neighbours


def refitted(K, F, regularisation, groups):
    """What scikit-learn's ridge on all other groups says of each group."""
    out = np.empty_like(F)
    for group in np.unique(groups):
        here = groups == group
        ridge = KernelRidge(alpha=regularisation, kernel="precomputed").fit(K[np.ix_(~here, ~here)], F[~here])
        out[here] = ridge.predict(K[np.ix_(here, ~here)])
    return out


def test_without_groups_it_is_the_ridge_fitted_without_each_sample(rng):
    K, F = RBF()(rng.normal(size=(15, 3))), rng.normal(size=(15, 2))
    groups = np.arange(15)
    np.testing.assert_allclose(left_out_embedding(K, F, 0.1, groups), refitted(K, F, 0.1, groups), atol=1e-10)


def test_duplicates_are_left_out_together(rng):
    rows = np.array([0, 1, 2, 2, 3, 0, 4, 2, 5, 6])
    K, F = RBF()(rng.normal(size=(7, 2))[rows]), rng.normal(size=(10, 2))
    np.testing.assert_allclose(left_out_embedding(K, F, 1e-2, rows), refitted(K, F, 1e-2, rows), atol=1e-9)


@given(st.integers(0, 10_000), st.integers(2, 12), st.sampled_from([1e-3, 1e-2, 1.0]))
def test_any_grouping_of_any_samples(seed, n, regularisation):
    rng = np.random.default_rng(seed)
    K, F, groups = RBF()(rng.normal(size=(n, 2))), rng.normal(size=(n, 2)), rng.integers(0, max(2, n // 2), size=n)
    groups[:2] = 0, 1  # a ridge needs samples outside the group
    expected = refitted(K, F, regularisation, groups)
    np.testing.assert_allclose(left_out_embedding(K, F, regularisation, groups), expected, atol=1e-7)


def test_arguments_are_not_changed(rng):
    K, F = RBF()(rng.normal(size=(6, 2))), rng.normal(size=(6, 2))
    before = K.copy(), F.copy()
    left_out_embedding(K, F, 0.1, np.array([0, 0, 1, 2, 3, 4]))
    np.testing.assert_array_equal(np.hstack([K, F]), np.hstack(before))


def test_folds_are_embedded_by_the_map_of_the_others(rng):
    X, F, weights = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.uniform(0.5, 2.0, 40)
    fold, known, k = np.arange(40) % 4, rng.random(40) < 0.8, 3
    folds = Folds(np.arange(40), fold, weights, np.arange(40))

    def refit(fold, rest, weights, K):
        return F[rest], MapRegression(K, weights, 1.0, 0.1)

    fitted = rng.normal(size=(40, 2))

    def similarity(fold, rest, out):
        return RBF(1.0 + fold)(X[rest]), RBF(1.0 + fold)(X[out], X[rest])

    found = cross_fitted(similarity, refit, folds, known, fitted, lay_over, k)
    for g in range(4):
        out, rest = np.flatnonzero(fold == g), np.flatnonzero(fold != g)
        ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5 / (1.0 + g) ** 2).fit(X[rest], F[rest], weights[rest])
        expected = lay_over(ridge.predict(X[out]), ridge.predict(X[rest]), fitted[rest], weights[rest])
        np.testing.assert_allclose(found.places[out], expected, atol=1e-8)
        # Neighbours are those of the same map, among samples with known targets.
        others = rest[known[rest]]
        order = others[cdist(ridge.predict(X[out]), ridge.predict(X[others])).argsort(axis=1)[:, : 2 * k]]
        for row, near in zip(found.neighbours[out].toarray(), order, strict=True):
            used = near[: np.searchsorted(weights[near].cumsum(), k) + 1][:k]
            assert set(np.flatnonzero(row)) == set(used)
            assert row.sum() == pytest.approx(1.0)


@given(st.integers(0, 10_000))
def test_neighbours_by_weight_are_those_of_repeated_rows(seed):
    """Against scikit-learn's neighbours of rows that are repeated; places may be shared by several samples."""
    rng = np.random.default_rng(seed)
    sites = rng.integers(6, size=12)
    among, weights = rng.normal(size=(6, 2))[sites], rng.integers(1, 4, 12)
    points, values = rng.normal(size=(5, 2)), rng.normal(size=(12, 1))
    repeated = np.repeat(np.arange(12), weights)
    distances = cdist(points, among[repeated])
    found = share_neighbours(points, among, weights.astype(float), sites, 4) @ values
    for k, row in enumerate(distances):
        last = np.sort(row)[3]
        sure, tied = values[repeated[row < last - 1e-9]], values[repeated[abs(row - last) <= 1e-9]]
        expected = (sure.sum() + (4 - len(sure)) * tied.mean()) / 4  # the mean over ties broken at random
        assert found[k, 0] == pytest.approx(expected)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_turned_shifted_scaled_picture_is_laid_over_the_other(rng, p):
    source, weights = rng.normal(size=(30, p)), rng.uniform(0.5, 2.0, 30)
    R = np.linalg.qr(rng.normal(size=(p, p)))[0]
    target = 0.7 * source @ R + rng.normal(size=p)
    for laid in (align, lay_over):
        np.testing.assert_allclose(laid(source[:5], source, target, weights), target[:5], atol=1e-12)


def test_the_alignment_is_the_best_by_weighted_squares(rng):
    source, target, weights = rng.normal(size=(20, 2)), rng.normal(size=(20, 2)), rng.uniform(0.1, 3.0, 20)

    def error(parameters, sign):
        angle, scale, *shift = parameters
        R = np.array([[np.cos(angle), np.sin(angle)], [-sign * np.sin(angle), sign * np.cos(angle)]])
        return weights @ ((scale * source @ R + shift - target) ** 2).sum(axis=1)

    starts = [(angle, 1.0, 0.0, 0.0) for angle in (0.0, 2.0, 4.0)]
    best = min(minimize(error, start, (sign,)).fun for start in starts for sign in (1, -1))
    assert weights @ ((align(source, source, target, weights) - target) ** 2).sum(axis=1) == pytest.approx(best)


def test_parts_of_a_picture_move_by_themselves(rng):
    """Three groups in other places, as no rotation could put them; new points near a group go where it went."""
    before, after = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]]), np.array([[0.0, 5.0], [3.0, 0.0], [-4.0, -2.0]])
    group = np.arange(60) % 3
    noise, new = rng.normal(scale=0.1, size=(60, 2)), rng.normal(scale=0.1, size=(3, 2))
    places = lay_over(before + new, before[group] + noise, after[group] + noise, rng.uniform(0.5, 2.0, 60))
    np.testing.assert_allclose(places, after + new, atol=0.4)
    assert np.abs(align(before, before, after, np.ones(3)) - after).max() > 1.0


@pytest.mark.parametrize(("n", "k"), [(8, 8), (60, 10), (400, 40), (5000, 300)])
def test_a_point_moves_with_the_tenth_around_it(rng, n, k):
    """At least 10 and at most 300: refits of 32,000 samples took 1.5 GB, four times as much of twice as many."""
    source, weights, points = rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, n), rng.normal(size=(4, 2))
    target = source + 0.2 * np.sin(3 * source[:, ::-1])
    there, new = (align(places, source, target, weights) for places in (source, points))
    for found, at in zip(lay_over(points, source, target, weights), new, strict=True):
        distance = np.linalg.norm(there - at, axis=1)
        near = np.argsort(distance)[:k]
        w = weights[near] * np.exp(-2 * (distance[near] / distance[near[-1]]) ** 2)
        np.testing.assert_allclose(found, at + w @ (target - there)[near] / w.sum(), atol=1e-9)


def test_a_picture_of_one_point_is_moved_only():
    np.testing.assert_array_equal(align(np.eye(2), np.ones((3, 2)), np.zeros((3, 2)), np.ones(3)), np.eye(2) - 1)

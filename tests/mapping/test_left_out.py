"""The left-out embedding against maps that were fitted again without the samples in question."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from distreduce.kernels import RBF
from distreduce.mapping import MapRegression, left_out_embedding
from distreduce.mapping.left_out import cross_fitted


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
    folds, known, k = np.arange(40) % 4, rng.random(40) < 0.8, 3

    def refit(fold, rest, K):
        return F[rest], MapRegression(K, weights[rest], 1.0, 0.1)

    found = cross_fitted(lambda fold: RBF(1.0 + fold)(X), refit, folds, known, 2, k)
    for fold in range(4):
        out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5 / (1.0 + fold) ** 2).fit(X[rest], F[rest], weights[rest])
        np.testing.assert_allclose(found.places[out], ridge.predict(X[out]), atol=1e-8)
        # Neighbours are those of the same map, among samples with known targets.
        others = rest[known[rest]]
        nearest = others[cdist(ridge.predict(X[out]), ridge.predict(X[others])).argsort(axis=1)[:, :k]]
        np.testing.assert_array_equal(found.neighbours[out], nearest)

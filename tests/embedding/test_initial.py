"""Where the embedding starts: principal coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.decomposition import PCA

from distreduce.coupling.problem import hard_plan
from distreduce.embedding.optimize import START_SCALE, initial_prototypes


def start(inputs, plan=None, p=2, *, precomputed=False, seed=0):
    plan = hard_plan(np.arange(inputs.shape[0]), np.ones(inputs.shape[0]), inputs.shape[0]) if plan is None else plan
    return initial_prototypes(inputs, plan, p, np.random.RandomState(seed), precomputed=precomputed)


def scaled(scores):
    """Scores with the start's spread, and signs by the largest entry."""
    scores = scores * np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])])
    return START_SCALE * scores / np.sqrt((scores**2).mean(axis=0).max())


@pytest.mark.parametrize("shape", [(40, 5), (10, 60), (1600, 5)])
def test_one_to_one_start_is_pca(shape, rng):
    X = rng.normal(size=shape) * np.linspace(3, 0.1, shape[1])
    np.testing.assert_allclose(start(X, p=3), scaled(PCA(3).fit_transform(X)), rtol=1e-7, atol=1e-10)


def test_prototypes_start_at_the_coordinates_of_their_means(rng):
    X, groups = rng.normal(size=(60, 4)), rng.integers(7, size=60)
    counts = np.bincount(groups, minlength=7)
    means = np.array([X[groups == k].mean(axis=0) for k in range(7)])
    # PCA of the means, each as often as it has samples.
    scores = PCA(2).fit_transform(means[groups])
    first = np.array([np.flatnonzero(groups == k)[0] for k in range(7)])
    found = start(X, hard_plan(groups, np.ones(60), 7))
    np.testing.assert_allclose(np.abs(found), np.abs(scaled(scores)[first]), rtol=1e-7, atol=1e-10)
    assert np.sqrt((counts @ found**2 / 60).max()) == pytest.approx(START_SCALE)


def test_weights_are_repetitions(rng):
    X = rng.normal(size=(12, 3))
    twice = np.r_[0, np.arange(12)]
    weighted = start(X, hard_plan(np.arange(12), np.r_[2.0, np.ones(11)], 12))
    np.testing.assert_allclose(weighted[twice], start(X[twice]), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("m", [20, 6])
def test_distances_say_the_same_as_features(m, rng):
    X = rng.normal(size=(20, 3))
    plan = hard_plan(np.arange(20) % m, rng.uniform(0.5, 2, 20), m)
    expected = start(X, plan)
    np.testing.assert_allclose(start(cdist(X, X), plan, precomputed=True), expected, rtol=1e-7, atol=1e-9)


def test_sparse_features_say_the_same(rng):
    X = rng.normal(size=(20, 6)) * (rng.uniform(size=(20, 6)) < 0.4)
    np.testing.assert_allclose(start(sparse.csr_array(X)), start(X), rtol=1e-9, atol=1e-12)


def test_shifts_rotations_and_scales_do_not_matter(rng):
    X = rng.normal(size=(25, 4)) * [4, 2, 1, 0.5]
    moved = 7.0 * X @ ortho_group.rvs(4, random_state=0) + 100.0
    np.testing.assert_allclose(start(moved), start(X), rtol=1e-6, atol=1e-9)


def test_flat_directions_start_from_noise(rng):
    X = np.outer(rng.normal(size=15), [1.0, 2.0])
    Z = start(X, p=3)
    spread = Z.std(axis=0)
    assert spread[0] == pytest.approx(START_SCALE) and (spread[1:] > 0.01 * START_SCALE).all()
    assert (spread[1:] < START_SCALE).all()


def test_one_place_starts_from_noise_alone():
    Z = start(np.ones((8, 3)))
    assert np.isfinite(Z).all() and len(np.unique(Z)) == 16


def test_more_components_than_prototypes(rng):
    Z = start(rng.normal(size=(3, 2)), p=5)
    assert Z.shape == (3, 5) and (Z.std(axis=0) > 0).all()


def test_huge_and_tiny_numbers_do_not_overflow(rng):
    X = rng.normal(size=(10, 3))
    for factor in (1e200, 1e-200):
        np.testing.assert_allclose(start(factor * X), start(X), rtol=1e-7, atol=1e-10)


def test_an_empty_prototype_has_a_finite_place(rng):
    assert np.isfinite(start(rng.normal(size=(6, 2)), hard_plan(np.arange(6) % 3, np.ones(6), 4))).all()

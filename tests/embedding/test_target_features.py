"""Features of the targets against the kernel matrix they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce.dependence import RESIDUAL, nystrom_features
from distreduce.kernels import RBF, Delta, Linear, RationalQuadratic

KERNELS = pytest.mark.parametrize("kernel", [RBF(0.8), RationalQuadratic(length_scale=0.5)], ids=str)


def largest_error(features, kernel, Y):
    return np.abs(kernel(Y) - features(Y) @ features(Y).T).max()


@pytest.mark.parametrize("n_features", [3, 20, 256])
@pytest.mark.parametrize("c", [1, 3])
@KERNELS
def test_no_entry_is_further_off_than_the_error_says(kernel, c, n_features, rng):
    Y = rng.normal(size=(400, c))
    features = nystrom_features(Y, kernel, n_features)
    assert largest_error(features, kernel, Y) <= features.error * (1 + 1e-6) + 1e-12


@KERNELS
def test_the_error_is_the_largest_on_the_diagonal(kernel, rng):
    Y = rng.normal(size=(200, 3))
    features = nystrom_features(Y, kernel, 15)
    assert features.error == pytest.approx((1.0 - (features(Y) ** 2).sum(axis=1)).max(), rel=1e-9)


@pytest.mark.parametrize(("kernel", "enough"), [(RBF(1.0), 20), (RBF(0.1), 120), (RationalQuadratic(), 40)], ids=str)
def test_few_features_are_enough_in_one_dimension(kernel, enough, rng):
    """Standardised targets, to the residual where the choice of landmarks ends."""
    features = nystrom_features(rng.normal(size=(5000, 1)), kernel)
    assert features.error <= RESIDUAL and len(features.landmarks) <= enough


def test_targets_outside_the_sample_are_approximated_as_well(rng):
    features = nystrom_features(rng.normal(size=(3000, 1)), RBF(0.7))
    assert largest_error(features, RBF(0.7), rng.uniform(-2, 2, (100, 1))) <= 10 * RESIDUAL


def test_one_length_scale_a_target(rng):
    Y, kernel = rng.normal(size=(300, 2)), RBF((0.5, 2.0))
    features = nystrom_features(Y, kernel)
    assert largest_error(features, kernel, Y) <= features.error + 1e-12


@pytest.mark.parametrize("kernel", [Delta(), Linear()], ids=str)
def test_class_weights_are_their_own_features(kernel, rng):
    Y = np.eye(4)[rng.integers(4, size=30)]
    np.testing.assert_array_equal(nystrom_features(Y, kernel)(Y), Y)


def test_unknown_and_repeated_targets_add_no_landmark(rng):
    values = np.array([[0.0], [1.0], [np.nan], [1.0], [3.0]])
    np.testing.assert_array_equal(np.sort(nystrom_features(values, RBF()).landmarks.ravel()), [0.0, 1.0, 3.0])


def test_the_transported_kernel_needs_the_features_only(rng):
    """Tᵀ K_Y T = (Tᵀ Φ)(Tᵀ Φ)ᵀ, which is what the features are for."""
    Y, T = rng.normal(size=(200, 1)), rng.dirichlet(np.ones(5), 200)
    features = nystrom_features(Y, RBF())
    sums = T.T @ features(Y)
    np.testing.assert_allclose(sums @ sums.T, T.T @ RBF()(Y) @ T, rtol=1e-5)

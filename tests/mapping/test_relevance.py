"""ARD length scales: the likelihood against scikit-learn's, its gradient, and what it says about features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from distreduce.kernels import RBF as GAUSSIAN
from distreduce.kernels import Matern32
from distreduce.mapping import relevance_length_scales
from distreduce.mapping.relevance import negative_log_likelihood


def test_likelihood_is_scikit_learns(rng):
    X, Y = rng.normal(size=(25, 3)), rng.normal(size=(25, 1))
    scales, signal, noise = np.array([0.7, 1.5, 3.0]), 1.3, 0.2
    kernel = ConstantKernel(signal) * RBF(scales) + WhiteKernel(noise)
    gp = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-10).fit(X, Y)
    value, _ = negative_log_likelihood(np.log(np.r_[scales, signal, noise]), X, Y, np.ones(25))
    assert value + 12.5 * np.log(2 * np.pi) == pytest.approx(-gp.log_marginal_likelihood(), rel=1e-8)


def test_several_targets_add_their_likelihoods(rng):
    X, Y, w = rng.normal(size=(15, 2)), rng.normal(size=(15, 3)), rng.uniform(0.5, 2, 15)
    at = np.log([0.7, 1.5, 1.1, 0.3])
    parts = [negative_log_likelihood(at, X, Y[:, [c]], w) for c in range(3)]
    value, gradient = negative_log_likelihood(at, X, Y, w)
    assert value == pytest.approx(sum(part[0] for part in parts), rel=1e-12)
    np.testing.assert_allclose(gradient, sum(part[1] for part in parts), rtol=1e-10)


@pytest.mark.parametrize("kernel", [GAUSSIAN(1.0), Matern32()])
def test_gradient_is_that_of_the_value(rng, kernel):
    X, Y, w = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.uniform(0.5, 2, 20)
    at = rng.normal(scale=0.3, size=5)
    slopes = approx_fprime(at, lambda x: negative_log_likelihood(x, X, Y, w, kernel)[0], 1e-7)
    np.testing.assert_allclose(negative_log_likelihood(at, X, Y, w, kernel)[1], slopes, rtol=1e-4, atol=1e-4)


def test_a_feature_without_meaning_gets_a_long_scale(rng):
    X = rng.normal(size=(120, 3))
    scales = relevance_length_scales(X, np.sin(2 * X[:, :1]), np.ones(120), 1.0)
    assert scales[1:].min() > 10 * scales[0]


def test_scales_come_in_the_units_of_the_features(rng):
    X = rng.normal(size=(60, 2))
    Y = X[:, :1] ** 2 + np.cos(X[:, 1:])
    scales = relevance_length_scales(X, Y, np.ones(60), 1.0)
    np.testing.assert_allclose(relevance_length_scales(8 * X, 3 * Y + 5, np.ones(60), 8.0), 8 * scales, rtol=0.02)


def test_constant_targets_are_survived(rng):
    scales = relevance_length_scales(rng.normal(size=(20, 2)), np.ones((20, 1)), np.ones(20), 1.0)
    assert (np.isfinite(scales) & (scales > 0)).all()

"""Merged samples: the likelihood of all of them from the distinct ones, and the GP on their means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from distreduce._utils.numerics import evenly_spaced
from distreduce.gp._exact import ExactGP, MergedRows
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.kernels import Matern32
from distreduce.mapping.relevance import GAUSSIAN

FOUND = Hyperparameters(np.array([0.7, 1.5, 3.0]), 1.3, 0.2)
AT = FOUND.logarithms()
CONSTANT = 0.5 * np.log(2 * np.pi)


@pytest.fixture
def repeated(rng):
    """Repeated measurements: 12 places, 30 samples, two targets."""
    places = rng.normal(size=(12, 3))[np.r_[:12, rng.integers(0, 12, size=18)]]
    return places, rng.normal(size=(30, 2))


def rows_of(X, Y, weights=None):
    return MergedRows.of(X, Y, np.ones(len(X)) if weights is None else weights)


def test_likelihood_of_merged_rows_is_that_of_all_samples(repeated):
    X, Y = repeated
    scaled = X / FOUND.length_scales
    everything = multivariate_normal(cov=FOUND.signal * GAUSSIAN(scaled) + FOUND.noise * np.eye(30))
    merged = rows_of(X, Y)
    assert len(merged.inputs) == 12
    # Left out are constants of the 60 numbers, and ½ log h of each mean of h of them.
    expected = -everything.logpdf(Y.T).sum() - 60 * CONSTANT - np.log(merged.weights).sum()
    assert merged.likelihood(AT)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kernel", [GAUSSIAN, Matern32()], ids=["smooth", "rough"])
def test_gradient_is_that_of_the_likelihood(repeated, kernel):
    merged = rows_of(*repeated)
    slopes = approx_fprime(AT, lambda at: merged.likelihood(at, kernel)[0], 1e-7)
    np.testing.assert_allclose(merged.likelihood(AT, kernel)[1], slopes, rtol=1e-4, atol=1e-4)


def test_rows_twice_are_rows_of_weight_two(repeated):
    X, Y = repeated
    value, gradient = rows_of(np.r_[X, X], np.r_[Y, Y]).likelihood(AT)
    weighted = rows_of(X, Y, np.full(30, 2.0)).likelihood(AT)
    assert value == pytest.approx(weighted[0], rel=1e-12)
    np.testing.assert_allclose(gradient, weighted[1], rtol=1e-10)


def test_neither_order_nor_rows_without_weight_matter(repeated, rng):
    X, Y = repeated
    order, weights = rng.permutation(35), np.r_[np.ones(30), np.zeros(5)]
    wide, tall = np.r_[X, rng.normal(size=(5, 3))], np.r_[Y, rng.normal(size=(5, 2))]
    ours, expected = rows_of(wide[order], tall[order], weights[order]), rows_of(X, Y)
    for name in ("inputs", "targets", "weights", "scatter"):
        np.testing.assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-12, err_msg=name)


def test_weights_and_several_targets_are_scikit_learns(rng):
    X, Y, weights, new = (rng.normal(size=(25, 3)), rng.normal(size=(25, 2)), rng.uniform(0.5, 4.0, 25),
                          rng.normal(size=(9, 3)))  # fmt: skip
    kernel = ConstantKernel(FOUND.signal) * RBF(FOUND.length_scales)
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=FOUND.noise / weights).fit(X, Y)
    mean, std = theirs.predict(new, return_std=True)
    ours = ExactGP(X, Y, FOUND, weights=weights).moments(new)
    np.testing.assert_allclose(ours[0], mean, rtol=1e-9)
    np.testing.assert_allclose(ours[1], std[:, 0] ** 2 + FOUND.noise, rtol=1e-9)


def test_the_gp_of_merged_rows_is_that_of_all_samples(repeated, rng):
    X, Y = repeated
    merged, new = rows_of(X, Y), rng.normal(size=(9, 3))
    ours = ExactGP(merged.inputs, merged.targets, FOUND, weights=merged.weights).moments(new)
    for found, expected in zip(ours, ExactGP(X, Y, FOUND).moments(new), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_training_on_copies_does_not_take_their_agreement_for_certainty(rng):
    X = rng.uniform(size=(40, 1))
    y = np.sin(6 * X) + 0.3 * rng.normal(size=(40, 1))
    agreeing, measured = ((np.r_[X, X], np.r_[y, other]) for other in (y, y + 0.3 * rng.normal(size=(40, 1))))
    found = [Training()(rows_of(*rows).likelihood, Hyperparameters.start(np.ones(1))) for rows in (measured, agreeing)]
    assert found[0].noise == pytest.approx(0.3**2, rel=0.6)  # copies that differ tell the noise
    assert found[1].noise < found[0].noise


def test_thinned_rows_are_evenly_spaced_and_keep_their_share_of_the_scatter(rng):
    X, Y = np.repeat(rng.normal(size=(40, 2)), 3, axis=0), rng.normal(size=(120, 1))
    merged = rows_of(X, Y)
    thin = merged.thin(10)
    np.testing.assert_array_equal(thin.inputs, merged.inputs[evenly_spaced(40, 10)])
    np.testing.assert_allclose(thin.scatter, merged.scatter / 4, rtol=1e-12)
    assert merged.thin(40) is merged

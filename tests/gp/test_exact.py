"""The exact GP against scikit-learn's, against GPyTorch's and against models fitted again."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from distreduce.exceptions import NumericalError
from distreduce.gp._exact import ExactGP, MergedRows, factorise
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.kernels import Matern32

FOUND = Hyperparameters(np.array([0.7, 1.5, 3.0]), 1.3, 0.2)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(25, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=25), rng.normal(size=(9, 3))


def scikit_learns(X, y, correlation=None):
    kernel = ConstantKernel(FOUND.signal) * (correlation or RBF(FOUND.length_scales)) + WhiteKernel(FOUND.noise)
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)


def test_moments_are_scikit_learns(problem):
    X, y, new = problem
    mean, std = scikit_learns(X, y).predict(new, return_std=True)
    np.testing.assert_allclose(ExactGP(X, y, FOUND).moments(new), (mean, std**2), rtol=1e-9)


def test_covariance_is_scikit_learns(problem):
    X, y, new = problem
    _, covariance = scikit_learns(X, y).predict(new, return_cov=True)
    np.testing.assert_allclose(ExactGP(X, y, FOUND).covariance(new), covariance, atol=1e-10)


def test_moments_of_rough_functions_are_scikit_learns(problem):
    X, y, new = problem
    mean, std = scikit_learns(X, y, Matern(FOUND.length_scales, nu=1.5)).predict(new, return_std=True)
    np.testing.assert_allclose(ExactGP(X, y, FOUND, Matern32()).moments(new), (mean, std**2), rtol=1e-9)


def test_moments_are_gpytorchs(problem):
    torch, gpytorch = pytest.importorskip("torch"), pytest.importorskip("gpytorch")
    X, y, new = problem

    class Model(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(torch.tensor(X), torch.tensor(y), gpytorch.likelihoods.GaussianLikelihood())
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=3))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(x.new_zeros(len(x)), self.kernel(x))

    model = Model().double()
    model.kernel.base_kernel.lengthscale = torch.tensor(FOUND.length_scales)
    model.kernel.outputscale, model.likelihood.noise = FOUND.signal, FOUND.noise
    with torch.no_grad():
        posterior = model.eval().likelihood.eval()(model(torch.tensor(new)))
    expected = posterior.mean.numpy(), posterior.variance.numpy()
    np.testing.assert_allclose(ExactGP(X, y, FOUND).moments(new), expected, rtol=1e-6)


def test_leave_one_out_is_that_of_models_fitted_without_the_sample(problem):
    X, y, _ = problem
    others = [np.delete(np.arange(25), i) for i in range(25)]
    refits = [scikit_learns(X[rows], y[rows]).predict(X[[i]], return_std=True) for i, rows in enumerate(others)]
    mean, std = np.array(refits)[:, :, 0].T
    np.testing.assert_allclose(ExactGP(X, y, FOUND).leave_one_out(), (mean, std**2), rtol=1e-8)


@pytest.mark.parametrize("features", [3, 70])
def test_moments_have_the_same_bits_in_any_batch(rng, features):
    X, new = rng.normal(size=(241, features)), rng.normal(size=(400, features))
    gp = ExactGP(X, X[:, :2], Hyperparameters(np.full(features, 2.0), 1.3, 0.2))
    mean, variance = gp.moments(new)
    np.testing.assert_array_equal(gp.mean(new), mean)
    for rows in (slice(0, 1), slice(7, 40), slice(100, 399)):
        alone = gp.moments(new[rows])
        np.testing.assert_array_equal(alone[0], mean[rows])
        np.testing.assert_array_equal(alone[1], variance[rows])


def test_variance_is_never_below_the_noise():
    X = np.repeat(np.linspace(0, 1, 5), 20)[:, None]
    found = Hyperparameters(np.ones(1), 1e3, 1e-6)
    _, variance = ExactGP(X, X[:, 0], found).moments(X)
    assert variance.min() >= found.noise


def test_training_does_not_mind_an_offset(problem):
    X, y, _ = problem
    start = Hyperparameters.start(np.ones(3))
    merged = [MergedRows.of(inputs, y[:, None], np.ones(25)) for inputs in (X, X + 1e8)]
    found, shifted = (Training()(rows.likelihood, start) for rows in merged)
    np.testing.assert_allclose(shifted.logarithms(), found.logarithms(), atol=0.05)


def test_a_semi_definite_covariance_is_repaired():
    factor = factorise(np.ones((6, 6)), 0.0)
    np.testing.assert_allclose(factor @ factor.T, np.ones((6, 6)), atol=1e-5)


def test_a_covariance_beyond_repair_is_refused():
    with pytest.raises(NumericalError, match="scale X"):
        factorise(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.0)


def test_a_covariance_that_is_no_number_is_refused():
    with pytest.raises(NumericalError, match="not finite"):
        factorise(np.full((2, 2), np.nan), 0.1)

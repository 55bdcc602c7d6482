"""Mixtures of predictions: weights against a general optimiser, moments against integrals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from distreduce.gp._exact import ExactGP
from distreduce.gp._hyperparameters import NOISE_FLOOR, Hyperparameters
from distreduce.gp._stack import Stack, log_density, mixed_moments, stacking_weights


def mean_log_score(weights, log_densities):
    return float(np.log(weights @ np.exp(log_densities)).mean())


def by_slsqp(log_densities):
    k = len(log_densities)
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1}
    return minimize(
        lambda w: -mean_log_score(w, log_densities),
        np.full(k, 1 / k),
        method="SLSQP",
        bounds=[(1e-12, 1)] * k,
        constraints=simplex,
    ).x


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(5, 60))
def test_weights_score_as_well_as_a_general_optimisers(seed, k, n):
    log_densities = np.random.default_rng(seed).normal(scale=2.0, size=(k, n))
    ours = mean_log_score(stacking_weights(log_densities), log_densities)
    assert ours >= mean_log_score(by_slsqp(log_densities), log_densities) - 1e-4


def test_weights_are_a_general_optimisers(rng):
    y = rng.normal(size=500)
    log_densities = np.array([log_density(y, y + rng.normal(size=500), np.full(500, v)) for v in (0.5, 2.0)])
    np.testing.assert_allclose(stacking_weights(log_densities), by_slsqp(log_densities), atol=5e-3)


def test_weights_survive_densities_that_underflow():
    weights = stacking_weights(np.array([[-1e5, -2e5, -1e5], [-2e5, -1e5, -3e5]]))
    np.testing.assert_allclose(weights, [2 / 3, 1 / 3], atol=1e-6)


def test_one_model_has_all_the_weight(rng):
    np.testing.assert_array_equal(stacking_weights(rng.normal(size=(1, 7))), [1.0])


def test_log_density_is_scipys(rng):
    y, mean, variance = rng.normal(size=(3, 8)) ** 2
    np.testing.assert_allclose(log_density(y, mean, variance), norm.logpdf(y, mean, np.sqrt(variance)), rtol=1e-12)


def test_moments_are_those_of_the_mixtures_density():
    weights, means, variances = np.array([0.3, 0.7]), np.array([[-1.0], [2.0]]), np.array([[0.5], [1.5]])

    def moment(f):
        parts = zip(weights, means[:, 0], np.sqrt(variances[:, 0]), strict=True)
        return sum(w * quad(lambda x, m=m, s=s: f(x) * norm.pdf(x, m, s), -20, 20)[0] for w, m, s in parts)

    centre = moment(lambda x: x)
    expected = [[centre], [moment(lambda x: (x - centre) ** 2)]]
    np.testing.assert_allclose(mixed_moments(weights, means, variances), expected, rtol=1e-7)


@pytest.fixture
def stack(rng):
    X = rng.normal(size=(30, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    views = {"inputs": X, "embedding": X[:, :1]}
    found = {view: Hyperparameters(np.ones(values.shape[1]), 1.0, 0.05) for view, values in views.items()}
    processes = {view: ExactGP(values, y, found[view]) for view, values in views.items()}
    new = rng.normal(size=(6, 2))
    return Stack(processes, {"inputs": 0.4, "embedding": 0.6}), {"inputs": new, "embedding": new[:, :1]}


def test_covariance_is_that_of_draws_from_the_mixture(stack, rng):
    mixture, views = stack
    n_draws = 200_000
    parts = [
        rng.multivariate_normal(process.moments(views[view])[0], process.covariance(views[view]), size=n_draws)
        for view, process in mixture.processes.items()
    ]
    draws = np.where(rng.uniform(size=(n_draws, 1)) < 0.4, *parts)
    np.testing.assert_allclose(mixture.covariance(views), np.cov(draws.T), atol=0.01)


def test_the_diagonal_of_the_covariance_is_the_variance(stack):
    mixture, views = stack
    np.testing.assert_allclose(mixture.covariance(views).diagonal(), mixture.moments(views)[1], rtol=1e-10)


def test_a_process_that_knows_nothing_gets_no_weight(rng):
    X = rng.normal(size=(60, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    found = Hyperparameters(np.ones(1), 1.0, 0.02)
    stack = Stack.of(
        {"inputs": ExactGP(X, y, found), "embedding": ExactGP(rng.normal(size=(60, 1)), y, found)}, rescaled=True
    )
    assert stack.weights["inputs"] > 0.95


def test_the_floor_of_the_noise_is_not_reported_as_noise(rng):
    X = np.linspace(0, 1, 40)[:, None]
    process = ExactGP(X, np.sin(3 * X[:, 0]), Hyperparameters(np.ones(1), 1.0, NOISE_FLOOR))
    stack = Stack.of({"inputs": process}, rescaled=True)
    new = {"inputs": rng.uniform(size=(50, 1))}
    mean, variance = stack.moments(new)
    assert np.sqrt(variance).max() < 0.3 * np.sqrt(NOISE_FLOOR)


@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_rescaled_variances_match_the_leave_one_out_errors(rng, noise):
    X = rng.normal(size=(50, 1))
    process = ExactGP(X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=50), Hyperparameters(np.ones(1), 1.0, noise))
    mean, variance = process.leave_one_out()
    scale = Stack.of({"inputs": process}, rescaled=True).variance_scale
    errors = (process.target - mean) ** 2 / (scale * variance)
    assert errors.sum() == pytest.approx(50 - 3)  # a length scale, signal and noise were chosen

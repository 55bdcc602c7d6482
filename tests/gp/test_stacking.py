"""Mixtures of predictions: weights against a general optimiser, moments against integrals, variances against errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from distreduce.gp._crossfit import CrossFit
from distreduce.gp._exact import ExactGP
from distreduce.gp._hyperparameters import NOISE_FLOOR, Hyperparameters
from distreduce.gp._stack import (
    Stack,
    calibrate_variance,
    keep_promising,
    log_density,
    mixed_moments,
    stacking_weights,
    thin_reference,
    weigh,
)


def log_posterior(weights, log_densities, h):
    """The objective of the weights: log likelihood, and a sample for each model."""
    return float(h @ np.log(weights @ np.exp(log_densities)) + np.log(weights).sum())


def by_slsqp(log_densities, h):
    k = len(log_densities)
    simplex = {"type": "eq", "fun": lambda w: w.sum() - 1}
    return minimize(
        lambda w: -log_posterior(w, log_densities, h) / h.sum(),
        np.full(k, 1 / k),
        method="SLSQP",
        bounds=[(1e-9, 1)] * k,
        constraints=simplex,
    ).x


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(5, 60))
def test_weights_are_as_good_as_a_general_optimisers(seed, k, n):
    rng = np.random.default_rng(seed)
    log_densities, h = rng.normal(scale=2.0, size=(k, n)), rng.uniform(0.5, 3.0, size=n)
    weights = stacking_weights(log_densities, h)
    assume(weights.all())  # a model that speaks for less than one sample is left out
    ours = log_posterior(weights, log_densities, h)
    assert ours >= log_posterior(by_slsqp(log_densities, h), log_densities, h) - 1e-3


def test_weights_of_samples_are_copies(rng):
    log_densities, counts = rng.normal(size=(3, 40)), rng.integers(0, 4, size=40)
    copied = stacking_weights(np.repeat(log_densities, counts, axis=1), np.ones(counts.sum()))
    np.testing.assert_allclose(stacking_weights(log_densities, counts.astype(float)), copied, rtol=1e-9)


def test_thrift_drops_an_expert_that_says_nearly_the_same_and_keeps_one_that_helps(rng):
    y = rng.normal(size=3000) + rng.choice([-2.0, 2.0], size=3000)
    logs = {"left": norm.logpdf(y, -2.0), "right": norm.logpdf(y, 2.0)}
    logs["nearly left"] = logs["left"] + 0.01 * rng.normal(size=3000)
    every, few = (weigh(logs, np.ones(3000), thrifty=thrifty) for thrifty in (False, True))
    assert len(every) == 3 and len(few) == 2 and "right" in few
    values = [np.log(sum(w * np.exp(logs[name]) for name, w in found.items())).mean() for found in (every, few)]
    assert values[1] > values[0] - 0.002


def test_weights_survive_densities_that_underflow():
    weights = stacking_weights(np.array([[-1e5, -2e5, -1e5], [-2e5, -1e5, -3e5]]), np.ones(3))
    np.testing.assert_allclose(weights, [3 / 5, 2 / 5], atol=1e-6)  # two samples, one sample, and one for each


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


@pytest.mark.parametrize("truth", [(0.0, 3.0), (1.0, 0.0), (0.5, 1.5)], ids=["factor", "constant", "both"])
def test_calibrated_variances_are_those_of_the_errors(rng, truth):
    claimed = rng.gamma(2.0, 0.5, size=8000)
    errors = rng.normal(size=8000) * np.sqrt(truth[0] + truth[1] * claimed)
    constant, factor = calibrate_variance(errors, claimed, np.ones(8000))
    np.testing.assert_allclose(constant + factor * claimed, truth[0] + truth[1] * claimed, rtol=0.25)
    assert np.mean(errors**2 / (constant + factor * claimed)) == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize("errors", [np.zeros(9), np.r_[np.zeros(8), 1.0]])
def test_variances_stay_positive_where_a_model_claims_none(errors):
    constant, factor = calibrate_variance(errors, np.zeros(9), np.ones(9))
    assert constant > 0 and factor >= 0


class Constant:
    """A predictor of one number."""

    def __init__(self, value):
        self.value = value

    def moments(self, inputs):
        return np.full(len(inputs), self.value), np.ones(len(inputs))


def cross_fitted(predictions, rows):
    """What experts said of left-out samples, with a variance of one that they made up."""
    left_out = {name: (mean[rows], np.ones(len(rows))) for name, mean in predictions.items()}
    return CrossFit(left_out, rows)


def test_an_expert_that_knows_nothing_gets_hardly_any_weight(rng):
    y = rng.normal(size=200)
    found = cross_fitted({"good": y + 0.3 * rng.normal(size=200), "bad": rng.normal(size=200)}, np.arange(200))
    weights = Stack.of(found, y, np.ones(200), np.arange(200)).weights
    assert weights["good"] > 0.95 and sum(weights.values()) == pytest.approx(1.0)


def test_only_experts_that_are_clearly_behind_are_given_up(rng):
    y = rng.normal(size=400)
    means = {
        "good": y + 0.3 * rng.normal(size=400),
        "equal": y + 0.3 * rng.normal(size=400),
        "bad": rng.normal(size=400),
    }
    densities = {name: norm(mean, 0.3 if name != "bad" else 1.4).logpdf(y) for name, mean in means.items()}
    assert keep_promising(densities, np.ones(400)) == ["good", "equal"]
    few = {name: own[:4] for name, own in densities.items()}
    assert "equal" in keep_promising(few, np.ones(4))
    # Hardly ever right, and then the only one: such an expert keeps a mixture from disasters.
    rare = {"sure": np.where(np.arange(400) < 390, 0.0, -20.0), "careful": np.full(400, -1.0)}
    assert keep_promising(rare, np.ones(400)) == ["sure", "careful"]
    assert keep_promising({"alone": rng.normal(size=400)}, np.ones(400)) == ["alone"]
    # A second expert of the same opinion gets a weight, but is worth nothing; few samples do not tell.
    twins = {"one": densities["good"], "other": densities["good"] + 1e-3 * rng.normal(size=400)}
    assert len(keep_promising(twins, np.ones(400))) == 1
    assert len(keep_promising({name: own[:150] for name, own in twins.items()}, np.ones(150))) == 2


def test_errors_of_a_stack_have_the_variance_that_it_claims(rng):
    """Two experts with the same size of errors, which disagree: their mixture is better than it looks."""
    y = rng.normal(size=300)
    means = {name: y + 0.5 * rng.normal(size=300) for name in "ab"}
    rows = np.arange(50, 300)  # of many samples, a part is left out
    found = cross_fitted(means, rows)
    stack = Stack.of(found, y, np.ones(300), np.arange(300))
    mean, variance = stack.mix(found.left_out)
    claimed = np.mean((y[rows] - mean) ** 2 / variance)
    assert claimed == pytest.approx(1 - 2 / 250, rel=1e-9)  # two weights were chosen with the same errors
    assert np.mean((y[rows] - mean) ** 2) == pytest.approx(0.5**2 / 2, rel=0.2)
    np.testing.assert_allclose(stack.errors, np.sort((y[rows] - mean) / np.sqrt(variance)), rtol=0.01)


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


def test_the_floor_of_the_noise_is_not_reported_as_noise(rng):
    X = np.linspace(0, 1, 40)[:, None]
    process = ExactGP(X, np.sin(3 * X[:, 0]), Hyperparameters(np.ones(1), 1.0, NOISE_FLOOR))
    stack = Stack.of_exact("inputs", process, rescaled=True)
    _, variance = stack.moments({"inputs": rng.uniform(size=(50, 1))})
    assert np.sqrt(variance).max() < 0.3 * np.sqrt(NOISE_FLOOR)


@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_rescaled_variances_match_the_leave_one_out_errors(rng, noise):
    X = rng.normal(size=(50, 1))
    process = ExactGP(X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=50), Hyperparameters(np.ones(1), 1.0, noise))
    mean, variance = process.leave_one_out()
    scale = Stack.of_exact("inputs", process, rescaled=True).variance_scale
    errors = (process.target - mean) ** 2 / (scale * variance)
    assert errors.sum() == pytest.approx(50 - 3)  # a length scale, signal and noise were chosen


def test_a_thinned_reference_keeps_the_quantiles(rng):
    scores = rng.normal(size=20_000)
    thin, groups = thin_reference(scores, (scores > 0).astype(int), 1000, np.ones(20_000))
    assert len(thin) == 1000 and (np.diff(thin) >= 0).all() and ((thin > 0) == groups).all()
    np.testing.assert_allclose(np.quantile(thin, [0.05, 0.5, 0.95]), np.quantile(scores, [0.05, 0.5, 0.95]), atol=0.02)


def test_the_ends_of_conformal_intervals_are_not_those_of_the_largest_group():
    weights, groups = np.r_[np.full(90, 1 / 90), np.full(10, 0.2)], np.repeat([0, 1, 2], [90, 6, 4])
    kept, _ = thin_reference(np.r_[np.zeros(90), np.ones(10)], groups, 1000, weights)
    assert len(kept) == 100 and 65 <= kept.sum() <= 68

"""Calibration of a model's own quantiles: for Gaussian ones that of mean and deviation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace, norm

from distreduce.metrics import calibration_curve, regression_scores
from distreduce.metrics.intervals import interval_levels, interval_scores, level_curve, observed_shares


class Fixed:
    """A model that says the same of every row."""

    def __init__(self, distribution, targets=()):
        self.distribution, self.targets = distribution, targets

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        return np.broadcast_to(self.distribution.ppf(quantiles), (len(X), *self.targets, len(quantiles)))


@pytest.mark.parametrize("targets", [(), (2,)])
def test_gaussian_intervals_are_those_of_the_curve(rng, targets):
    y = rng.normal(size=(60, *targets))
    levels, expected = calibration_curve(y, np.full(y.shape, 0.3), np.full(y.shape, 1.5))
    found = observed_shares(Fixed(norm(0.3, 1.5), targets), np.zeros((60, 1)), y, levels)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_gaussian_scores_are_those_of_mean_and_deviation(rng):
    y = rng.normal(size=80)
    expected = regression_scores(y, np.zeros(80), np.ones(80))
    assert interval_scores(Fixed(norm()), y, y) == pytest.approx(
        {name: expected[name] for name in ("mace", "coverage_90")}
    )


def test_the_right_distribution_is_calibrated(rng):
    y = laplace.rvs(size=20_000, random_state=rng)
    assert interval_scores(Fixed(laplace()), y, y)["mace"] < 0.01


@pytest.mark.parametrize("targets", [(), (2,)])
def test_levels_give_the_shares_of_the_quantiles(rng, targets):
    y, X, model = rng.normal(size=(60, *targets)), np.zeros((60, 1)), Fixed(laplace(0.3, 1.5), targets)
    expected, observed = level_curve(interval_levels(model, X, y))
    np.testing.assert_array_equal(observed, observed_shares(model, X, y, expected))
    assert interval_scores(model, X, y)["coverage_90"] == observed_shares(model, X, y, np.array([0.9]))[0]


def test_levels_are_those_of_the_distribution_rounded_up(rng):
    y = rng.normal(size=200)
    found = interval_levels(Fixed(norm()), y, y)
    exact = np.abs(2 * norm.cdf(y) - 1)
    assert ((found >= exact) & (found <= exact + 1 / 98)).all()

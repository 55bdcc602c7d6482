"""Calibration of a model's own quantiles: for Gaussian ones that of mean and deviation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace, norm

from distreduce.metrics import calibration_curve, regression_scores
from distreduce.metrics.held_out import interval_levels, level_curve, level_scores


class Fixed:
    """A model that says the same of every row."""

    def __init__(self, distribution, targets=()):
        self.distribution, self.targets = distribution, targets

    def predict_quantiles(self, X, quantiles=(0.05, 0.5, 0.95)):
        return np.broadcast_to(self.distribution.ppf(quantiles), (len(X), *self.targets, len(quantiles)))


@pytest.mark.parametrize("targets", [(), (2,)])
def test_gaussian_intervals_are_those_of_the_curve(rng, targets):
    y = rng.normal(size=(60, *targets))
    expected = calibration_curve(y, np.full(y.shape, 0.3), np.full(y.shape, 1.5))
    found = level_curve(interval_levels(Fixed(norm(0.3, 1.5), targets), np.zeros((60, 1)), y))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_gaussian_scores_are_those_of_mean_and_deviation(rng):
    y = rng.normal(size=80)
    expected = regression_scores(y, np.zeros(80), np.ones(80))
    assert level_scores(interval_levels(Fixed(norm()), y, y)) == pytest.approx(
        {name: expected[name] for name in ("mace", "coverage_90")}
    )


def test_the_right_distribution_is_calibrated(rng):
    y = laplace.rvs(size=20_000, random_state=rng)
    assert level_scores(interval_levels(Fixed(laplace()), y, y))["mace"] < 0.01


@pytest.mark.parametrize("targets", [(), (2,)])
def test_levels_give_the_shares_of_the_quantiles(rng, targets):
    y, X, model = rng.normal(size=(60, *targets)), np.zeros((60, 1)), Fixed(laplace(0.3, 1.5), targets)
    levels = interval_levels(model, X, y)
    expected, observed = level_curve(levels)
    ends = (model.predict_quantiles(X, (1 + sign * expected) / 2) for sign in (-1, 1))
    low, high = (end.reshape(-1, len(expected)) for end in ends)
    inside = (low <= y.reshape(-1, 1)) & (y.reshape(-1, 1) <= high)
    np.testing.assert_array_equal(observed, inside.mean(axis=0))
    low, high = model.distribution.ppf([0.05, 0.95])
    assert level_scores(levels)["coverage_90"] == ((low <= y) & (y <= high)).mean()


def test_levels_are_those_of_the_distribution_rounded_up(rng):
    y = rng.normal(size=200)
    found = interval_levels(Fixed(norm()), y, y)
    exact = np.abs(2 * norm.cdf(y) - 1)
    assert ((found >= exact) & (found <= exact + 1 / 98)).all()

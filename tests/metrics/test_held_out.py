"""The scores that a fit states, in units of the targets, and the calibration of a model's own quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import laplace, norm
from sklearn.metrics import r2_score

from distreduce.exceptions import InvalidInputError
from distreduce.metrics import calibration_curve, classification_scores, regression_scores
from distreduce.metrics.held_out import held_out_scores, interval_levels, level_curve, level_scores


@pytest.fixture
def said(rng):
    """Truth, means and deviations of two targets of very different units."""
    y = rng.normal(size=(40, 2)) * [100.0, 0.01]
    return y, y + rng.normal(size=(40, 2)) * [50.0, 0.002], np.full((40, 2), 1.0) * [50.0, 0.002]


def test_r2_is_the_mean_over_the_targets(said):
    y, mean, std = said
    assert held_out_scores(y, mean, std)["r2"] == pytest.approx(r2_score(y, mean))


def test_densities_are_those_of_targets_in_their_scale(said):
    y, mean, std = said
    scale = np.array([100.0, 0.01])
    assert (
        held_out_scores(y, mean, std, scale=scale)["mll"]
        == regression_scores(y / scale, mean / scale, std / scale)["mll"]
    )


def test_the_error_in_units_is_that_of_a_single_target(said):
    y, mean, std = said
    assert "rmse" not in held_out_scores(y, mean, std)
    assert held_out_scores(y[:, 0], mean[:, 0], scale=3.0)["rmse"] == np.sqrt(np.mean((y[:, 0] - mean[:, 0]) ** 2))


def test_levels_take_the_place_of_gaussian_intervals(said):
    scores = held_out_scores(*said, levels=np.full((40, 2), 0.95))
    assert scores["coverage_90"] == 0.0 and scores["mace"] > 0.4


def test_a_weight_of_two_is_the_row_twice_in_every_score(said, rng):
    h = rng.integers(0, 4, 40)
    levels, again = rng.uniform(size=(40, 2)), np.repeat(np.arange(40), h)
    for own in (None, levels):
        found = held_out_scores(*said, levels=own, sample_weight=h)
        repeated = held_out_scores(*(part[again] for part in said), levels=None if own is None else own[again])
        assert found == pytest.approx(repeated, rel=1e-10)
    proba = rng.dirichlet(np.ones(3), size=40)
    y = rng.integers(0, 3, 40)
    found, repeated = (
        classification_scores(y, proba, [0, 1, 2], h),
        classification_scores(y[again], proba[again], [0, 1, 2]),
    )
    assert found == pytest.approx(repeated, rel=1e-10)


@pytest.mark.parametrize("weights", [np.ones(39), -np.ones(40), np.zeros(40), np.full(40, np.nan), [[1.0]]])
def test_weights_of_no_use_are_refused(said, weights):
    with pytest.raises(InvalidInputError, match="sample_weight"):
        held_out_scores(*said, sample_weight=weights)


def test_an_infinite_score_of_a_row_without_weight_does_not_count():
    assert regression_scores([0.0, 1e300], [0.0, -1e300], [1.0, 1e-10], sample_weight=[1.0, 0.0])["mse"] == 0.0


def test_a_single_row_has_no_r2():
    assert np.isnan(held_out_scores([1.0], [1.0], [1.0])["r2"])


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, [1.0, 2.0, 3.0], "wide"])
def test_a_scale_of_no_use_is_refused(said, scale):
    with pytest.raises(InvalidInputError, match="scale"):
        held_out_scores(*said, scale=scale)


@pytest.mark.parametrize("levels", [np.full(40, 0.5), np.full((40, 2), 1.5), np.full((40, 2), np.nan)])
def test_levels_of_no_use_are_refused(said, levels):
    with pytest.raises(InvalidInputError, match="levels"):
        held_out_scores(*said, levels=levels)


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

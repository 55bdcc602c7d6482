"""Calibration against uncertainty-toolbox and against counting one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import uncertainty_toolbox as uct
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from distreduce.exceptions import InvalidInputError
from distreduce.metrics import (
    calibration_curve,
    expected_calibration_error,
    interval_coverage,
    mean_absolute_calibration_error,
)
from distreduce.metrics.calibration import calibration_error_by_chance

Gaussian = tuple[np.ndarray, np.ndarray, np.ndarray]
# Whole and half numbers over powers of two: exact hits of the mean, ties and residuals on the bounds are common.
ROUND = arrays(np.float64, 12, elements=st.integers(-6, 6).map(lambda k: k / 2))
SPREADS = arrays(np.float64, 12, elements=st.sampled_from([0.25, 0.5, 1.0, 2.0]))


@pytest.fixture
def gaussian(rng: np.random.Generator) -> Gaussian:
    """Biased, over-confident predictions of uneven spread."""
    mean, std = 3 * rng.standard_normal(150), rng.gamma(2.0, 0.5, 150)
    return mean + 1.4 * std * rng.standard_normal(150) + 0.2, mean, std


@pytest.mark.parametrize("n_levels", [99, 100, 2, 11])
@pytest.mark.parametrize("vectorized", [False, True])
def test_mace_is_that_of_uncertainty_toolbox(gaussian: Gaussian, n_levels: int, vectorized: bool) -> None:
    y, mean, std = gaussian
    expected = uct.mean_absolute_calibration_error(mean, std, y, num_bins=n_levels, vectorized=vectorized)
    assert mean_absolute_calibration_error(y, mean, std, n_levels=n_levels) == pytest.approx(expected, abs=1e-12)


def test_mace_has_99_levels_by_default(gaussian: Gaussian) -> None:
    y, mean, std = gaussian
    expected = uct.mean_absolute_calibration_error(mean, std, y, num_bins=99, prop_type="interval")
    assert mean_absolute_calibration_error(y, mean, std) == pytest.approx(expected, abs=1e-12)


@given(ROUND, ROUND, SPREADS)
def test_the_curve_is_that_of_uncertainty_toolbox(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> None:
    expected = uct.get_proportion_lists_vectorized(mean, std, y, num_bins=99, prop_type="interval")
    np.testing.assert_allclose(calibration_curve(y, mean, std), expected, atol=1e-14)


def test_a_residual_on_a_bound_counts_as_in_uncertainty_toolbox() -> None:
    levels = np.linspace(0, 1, 99)[1:-1]
    y = np.r_[stats.norm.ppf(0.5 + levels / 2), stats.norm.ppf(0.5 - levels / 2)]
    mean, std = np.zeros_like(y), np.ones_like(y)
    expected = uct.get_proportion_lists_vectorized(mean, std, y, num_bins=99)[1]
    np.testing.assert_allclose(calibration_curve(y, mean, std)[1], expected, atol=1e-14)


def test_quantile_mode_has_the_mace_of_uncertainty_toolbox(gaussian: Gaussian) -> None:
    y, mean, std = gaussian
    expected = uct.mean_absolute_calibration_error(mean, std, y, num_bins=99, prop_type="quantile")
    assert mean_absolute_calibration_error(y, mean, std, kind="quantile") == pytest.approx(expected, abs=1e-12)


def test_quantile_mode_counts_observations_below_the_quantiles(gaussian: Gaussian) -> None:
    y, mean, std = gaussian
    expected, observed = calibration_curve(y, mean, std, n_levels=21, kind="quantile")
    np.testing.assert_allclose(observed, [np.mean(y <= stats.norm.ppf(a, mean, std)) for a in expected], atol=1e-14)


def test_an_observation_on_its_quantile_counts_as_below() -> None:
    np.testing.assert_array_equal(calibration_curve([2.0], [2.0], [1.0], n_levels=3, kind="quantile")[1], [0, 1, 1])


def test_several_targets_count_as_one_long_column(gaussian: Gaussian) -> None:
    table = [part.reshape(50, 3) for part in gaussian]
    np.testing.assert_array_equal(calibration_curve(*table), calibration_curve(*gaussian))


def test_calibrated_predictions_lie_on_the_diagonal(rng: np.random.Generator) -> None:
    y = rng.standard_normal(20_000)
    expected, observed = calibration_curve(2 * y + 1, np.ones_like(y), 2 * np.ones_like(y))
    assert np.abs(expected - observed).max() < 1.63 / np.sqrt(len(y))  # Kolmogorov's bound at 1 %


@given(ROUND, ROUND, SPREADS, st.sampled_from(["interval", "quantile"]))
def test_the_curve_never_falls(y: np.ndarray, mean: np.ndarray, std: np.ndarray, kind: Any) -> None:
    assert (np.diff(calibration_curve(y, mean, std, kind=kind)[1]) >= 0).all()


@given(ROUND, ROUND, SPREADS, st.sampled_from([0.125, 4.0, 1024.0]))
def test_units_do_not_matter(y: np.ndarray, mean: np.ndarray, std: np.ndarray, unit: float) -> None:
    scaled = mean_absolute_calibration_error(unit * y, unit * mean, unit * std)
    assert scaled == mean_absolute_calibration_error(y, mean, std)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.95])
def test_coverage_counts_the_observations_in_scipys_intervals(gaussian: Gaussian, level: float) -> None:
    y, mean, std = gaussian
    low, high = stats.norm.interval(level, mean, std)
    assert interval_coverage(y, mean, std, level) == pytest.approx(np.mean((low <= y) & (y <= high)))


def one_by_one(correct: np.ndarray, confidence: np.ndarray, n_bins: int) -> float:
    """Guo et al.'s expected calibration error as it is written."""
    error = 0.0
    for b in range(n_bins):
        inside = [k for k in range(len(correct)) if b / n_bins < confidence[k] <= (b + 1) / n_bins]
        if inside:
            error += len(inside) / len(correct) * abs(np.mean(correct[inside]) - np.mean(confidence[inside]))
    return error


@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_ece_is_counted_one_by_one(rng: np.random.Generator, n_bins: int) -> None:
    rows, y = rng.dirichlet([0.5, 1.0, 1.5], 300), rng.integers(0, 3, 300)
    expected = one_by_one(rows.argmax(axis=1) == y, rows.max(axis=1), n_bins)
    assert expected_calibration_error(y, rows, [0, 1, 2], n_bins=n_bins) == pytest.approx(expected, abs=1e-12)


def test_ece_has_15_bins_by_default(rng: np.random.Generator) -> None:
    p = rng.uniform(0.5, 1.0, 400)
    correct = rng.random(400) < 0.75  # too shy below, too bold above: errors of merged bins would cancel
    expected = one_by_one(correct, p, 15)
    assert expected_calibration_error((~correct).astype(int), np.c_[p, 1 - p], [0, 1]) == pytest.approx(expected)


def test_a_confidence_on_an_edge_belongs_to_the_lower_bin() -> None:
    rows = np.array([[0.75, 0.25], [0.8, 0.2], [1.0, 0.0]])  # bins of a quarter: 0.75 is alone in (0.5, 0.75]
    expected = (0.75 + (1 - 0.8)) / 3
    assert expected_calibration_error([1, 0, 0], rows, [0, 1], n_bins=4) == pytest.approx(expected)


def test_ece_of_honest_probabilities_vanishes(rng: np.random.Generator) -> None:
    p = rng.uniform(0.5, 1.0, 50_000)
    y = (rng.random(50_000) > p).astype(int)
    assert expected_calibration_error(y, np.c_[p, 1 - p], [0, 1]) < 0.015


def test_the_error_by_chance_is_that_of_probabilities_that_are_right(rng):
    assert calibration_error_by_chance(np.array([[0.1, 0.9]]), n_draws=4000) == pytest.approx(2 * 0.9 * 0.1, abs=0.01)
    rows = rng.dirichlet([1.0, 1.0, 1.0], size=60)
    truths = [[rng.choice(3, p=row) for row in rows] for _ in range(200)]
    errors = [expected_calibration_error(y, rows, [0, 1, 2]) for y in truths]
    assert calibration_error_by_chance(rows) == pytest.approx(np.mean(errors), abs=0.01)
    assert calibration_error_by_chance(np.tile(rows, (100, 1))) < 0.03  # many rows have none


@pytest.mark.parametrize("level", [0.0, 1.0, 90, -0.1, np.nan])
def test_a_level_that_is_no_probability_is_refused(gaussian: Gaussian, level: float) -> None:
    with pytest.raises(InvalidInputError, match="must lie between 0 and 1"):
        interval_coverage(*gaussian, level)


@pytest.mark.parametrize("n_levels", [1, 0, 9.5, True])
def test_a_wrong_number_of_levels_is_refused(gaussian: Gaussian, n_levels: Any) -> None:
    with pytest.raises(InvalidInputError, match="n_levels="):
        mean_absolute_calibration_error(*gaussian, n_levels=n_levels)


def test_another_kind_of_curve_is_refused(gaussian: Gaussian) -> None:
    with pytest.raises(InvalidInputError, match="'interval' or 'quantile'"):
        calibration_curve(*gaussian, kind="tail")  # type: ignore[arg-type]


@pytest.mark.parametrize("n_bins", [0, 2.5, True])
def test_a_wrong_number_of_bins_is_refused(n_bins: Any) -> None:
    with pytest.raises(InvalidInputError, match="n_bins="):
        expected_calibration_error([0], [[1.0]], [0], n_bins=n_bins)


@pytest.mark.parametrize("score", [interval_coverage, calibration_curve, mean_absolute_calibration_error])
def test_a_prediction_without_spread_is_refused(score: Any) -> None:
    with pytest.raises(InvalidInputError, match="std must be above 0"):
        score([0.0], [0.0], [0.0])

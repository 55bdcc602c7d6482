"""Scores of predictions against uncertainty-toolbox, SciPy, scikit-learn, numerical integrals and hand computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import uncertainty_toolbox as uct
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from sklearn.metrics import mean_squared_error as sklearn_mse

from distreduce import metrics
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import (
    accuracy,
    brier_score,
    classification_scores,
    crps,
    mean_log_likelihood,
    mean_log_probability,
    mean_squared_error,
    negative_log_likelihood,
    regression_scores,
)

Gaussian = tuple[np.ndarray, np.ndarray, np.ndarray]
GAUSSIAN_SCORES = [mean_log_likelihood, negative_log_likelihood, crps, regression_scores]
CLASS_SCORES = [mean_log_probability, accuracy, brier_score, classification_scores]
CLASSES = np.array(["ant", "bee", "cat"])


@pytest.fixture(params=[(200,), (60, 3)], ids=["one target", "three targets"])
def gaussian(request: Any, rng: np.random.Generator) -> Gaussian:
    """Biased, over-confident predictions of uneven spread."""
    mean, std = 3 * rng.standard_normal(request.param), rng.gamma(2.0, 0.5, request.param)
    return mean + 1.4 * std * rng.standard_normal(request.param) + 0.2, mean, std


@pytest.fixture
def classified(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.choice(CLASSES, 120), rng.dirichlet([0.7, 1.0, 2.0], 120)


def flat(gaussian: Gaussian) -> Gaussian:
    """In the order and shape of uncertainty-toolbox."""
    y, mean, std = gaussian
    return mean.ravel(), std.ravel(), y.ravel()


def test_log_likelihood_is_that_of_scipy(gaussian: Gaussian) -> None:
    y, mean, std = gaussian
    assert mean_log_likelihood(y, mean, std) == pytest.approx(stats.norm.logpdf(y, mean, std).mean(), rel=1e-12)


def test_negative_log_likelihood_is_that_of_uncertainty_toolbox(gaussian: Gaussian) -> None:
    assert negative_log_likelihood(*gaussian) == pytest.approx(uct.nll_gaussian(*flat(gaussian)), rel=1e-12)


def test_squared_error_is_that_of_scikit_learn(gaussian: Gaussian) -> None:
    assert mean_squared_error(*gaussian[:2]) == pytest.approx(sklearn_mse(*gaussian[:2]), rel=1e-12)


def test_crps_is_that_of_uncertainty_toolbox(gaussian: Gaussian) -> None:
    assert crps(*gaussian) == pytest.approx(uct.crps_gaussian(*flat(gaussian)), rel=1e-12)


@pytest.mark.parametrize(("y", "mean", "std"), [(0.0, 0.0, 1.0), (2.0, -1.0, 0.7), (-4.0, 1.0, 2.5), (1.0, 1.1, 0.02)])
def test_crps_is_its_integral(y: float, mean: float, std: float) -> None:
    below = quad(lambda t: stats.norm.cdf(t, mean, std) ** 2, min(y, mean) - 12 * std, y, points=[mean], limit=200)[0]
    above = quad(lambda t: stats.norm.sf(t, mean, std) ** 2, y, max(y, mean) + 12 * std, points=[mean], limit=200)[0]
    assert crps([y], [mean], [std]) == pytest.approx(below + above, abs=1e-7)


def test_crps_is_the_energy_form_of_samples(rng: np.random.Generator) -> None:
    first, second = 0.5 + 2 * rng.standard_normal((2, 400_000))
    energy = np.abs(first - 3).mean() - 0.5 * np.abs(first - second).mean()
    assert crps([3.0], [0.5], [2.0]) == pytest.approx(energy, abs=0.01)


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(1e-3, 50))
def test_crps_lies_below_the_absolute_error_by_less_than_its_spread(y: float, mean: float, std: float) -> None:
    gap = abs(y - mean) - crps([y], [mean], [std])
    assert -std * (np.sqrt(2) - 1) / np.sqrt(np.pi) - 1e-9 <= gap <= std / np.sqrt(np.pi) + 1e-9


@given(st.floats(0.1, 5), st.floats(0.1, 5))
def test_the_true_spread_has_the_best_expected_likelihood(true: float, claimed: float) -> None:
    quantiles = true * stats.norm.ppf((np.arange(400) + 0.5) / 400)
    zeros, spread = np.zeros(400), np.std(quantiles) * np.ones(400)
    best = mean_log_likelihood(quantiles, zeros, spread)
    assert mean_log_likelihood(quantiles, zeros, claimed * np.ones(400)) <= best + 1e-12


def test_a_hopeless_density_is_minus_infinity() -> None:
    assert mean_log_likelihood([1.0, 0.0], [0.0, 0.0], [1e-200, 1.0]) == -np.inf


def test_crps_of_a_vanishing_spread_is_the_absolute_error() -> None:
    assert crps([3.0], [0.5], [1e-310]) == 2.5


def test_single_precision_is_computed_in_double() -> None:
    y, mean, std = (np.full(1000, value, dtype=np.float32) for value in (1.0, 0.1, 0.3))
    exact = stats.norm.logpdf(1.0, float(np.float32(0.1)), float(np.float32(0.3)))
    assert mean_log_likelihood(y, mean, std) == pytest.approx(exact, rel=1e-13)


def test_regression_scores_are_those_of_the_toolbox(gaussian: Gaussian) -> None:
    expected = {
        "mll": -uct.nll_gaussian(*flat(gaussian)),
        "nll": uct.nll_gaussian(*flat(gaussian)),
        "mse": sklearn_mse(*gaussian[:2]),
        "crps": uct.crps_gaussian(*flat(gaussian)),
        "mace": uct.mean_absolute_calibration_error(*flat(gaussian), num_bins=99),
        "coverage_90": uct.get_proportion_in_interval(*flat(gaussian), 0.9),
    }
    assert regression_scores(*gaussian) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("score", GAUSSIAN_SCORES)
@pytest.mark.parametrize(
    ("y", "mean", "std", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0], [1.0, 0.0], "std must be above 0; its smallest value is 0"),
        ([1.0, 2.0], [1.0, 2.0], [1.0, -2.0], "std must be above 0; its smallest value is -2"),
        ([1.0, 2.0], [[1.0], [2.0]], [1.0, 1.0], r"one shape.*got \(2,\) and \(2, 1\)"),
        ([1.0, 2.0], [1.0, 2.0], [[1.0], [1.0]], r"std must have the shape of y and mean, \(2,\); got \(2, 1\)"),
        ([1.0, 2.0], [1.0, 2.0], 1.0, r"std must have the shape"),
        ([1.0, np.nan], [1.0, 2.0], [1.0, 1.0], "y holds NaN"),
        ([1.0, 2.0], [1.0, np.inf], [1.0, 1.0], "mean holds NaN or infinity"),
        ([1.0, 2.0], [1.0, 2.0], [1.0, np.inf], "std holds NaN or infinity"),
        ([], [], [], "n ≥ 1"),
        (1.0, 1.0, 1.0, "one shape"),
        (["low", "high"], [1.0, 2.0], [1.0, 1.0], "y must be an array of numbers"),
    ],
)
def test_unusable_gaussians_are_refused(score: Any, y: Any, mean: Any, std: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        score(y, mean, std)


def test_cells_under_a_mask_are_not_used() -> None:
    hidden = np.ma.masked_array([0.0, 9.0], [False, True])
    with pytest.raises(InvalidInputError, match="y is a masked array with 1 masked cells"):
        metrics.crps(hidden, [0.0, 1.0], [1.0, 1.0])
    with pytest.raises(InvalidInputError, match="sample_weight is a masked array"):
        metrics.crps([0.0, 1.0], [0.0, 1.0], [1.0, 1.0], sample_weight=hidden)
    with pytest.raises(InvalidInputError, match="y is a masked array"):
        metrics.accuracy(hidden, [[0.5, 0.5], [0.5, 0.5]], [0.0, 9.0])
    with pytest.raises(InvalidInputError, match="labels is a masked array"):
        metrics.homogeneity(hidden, [0, 1])


def test_a_weight_that_is_wrong_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"sample_weight.*the least is -2"):
        metrics.mean_squared_error([0.0, 1.0], [0.0, 1.0], sample_weight=[1.0, -2.0])


def test_squared_error_refuses_to_broadcast() -> None:
    with pytest.raises(InvalidInputError, match=r"\(3,\) and \(3, 1\)"):
        mean_squared_error(np.zeros(3), np.zeros((3, 1)))


def test_log_probability_is_the_log_loss_of_scikit_learn(classified: Any) -> None:
    assert mean_log_probability(*classified, CLASSES) == pytest.approx(
        -log_loss(*classified, labels=CLASSES), rel=1e-12
    )


def test_log_probability_of_the_impossible_is_floored_as_in_scikit_learn() -> None:
    y, rows = ["bee", "cat"], np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    assert mean_log_probability(y, rows, CLASSES) == pytest.approx(-log_loss(y, rows, labels=CLASSES), rel=1e-12)


def test_accuracy_is_that_of_scikit_learn(classified: Any) -> None:
    y, rows = classified
    assert accuracy(y, rows, CLASSES) == pytest.approx(accuracy_score(y, CLASSES[rows.argmax(axis=1)]))


def test_brier_score_is_that_of_scikit_learn(classified: Any) -> None:
    """Which before 1.7 has it for two classes alone: each against the others, summed."""
    y, shares = classified
    expected = sum(brier_score_loss(y == label, shares[:, k]) for k, label in enumerate(CLASSES))
    assert brier_score(y, shares, CLASSES) == pytest.approx(expected, rel=1e-12)


def test_brier_score_of_two_classes_is_twice_the_binary_one(rng: np.random.Generator) -> None:
    y, p = rng.integers(0, 2, 50), rng.random(50)
    assert brier_score(y, np.c_[1 - p, p], [0, 1]) == pytest.approx(2 * brier_score_loss(y, p), rel=1e-12)


def test_columns_follow_the_classes(classified: Any) -> None:
    y, rows = classified
    shuffled = classification_scores(y, rows[:, [2, 0, 1]], CLASSES[[2, 0, 1]])
    assert shuffled == pytest.approx(classification_scores(y, rows, CLASSES))


@pytest.mark.parametrize("kind", [list, lambda y: y.astype(object), lambda y: y.astype("U20")])
def test_labels_of_any_kind_are_found(classified: Any, kind: Any) -> None:
    y, rows = classified
    expected = np.mean(CLASSES[rows.argmax(axis=1)] == y)
    assert accuracy(kind(y), rows, CLASSES.tolist()) == pytest.approx(expected)


def test_a_class_without_test_samples_is_no_obstacle() -> None:
    assert mean_log_probability([7, 7], [[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]], [3, 7, 9]) == pytest.approx(
        (np.log(0.75) + np.log(0.25)) / 2
    )


@pytest.mark.parametrize("score", [*CLASS_SCORES, metrics.expected_calibration_error])
@pytest.mark.parametrize(
    ("y", "rows", "classes", "message"),
    [
        ([0, 2], [[0.5, 0.5], [0.5, 0.5]], [0, 1], "the label 2, which is not among the classes"),
        (["0", "1"], [[0.5, 0.5], [0.5, 0.5]], [0, 1], "is not among the classes"),
        ([0.0, np.nan], [[0.5, 0.5], [0.5, 0.5]], [0, 1], "the label nan, which"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], [0, 0], "classes holds 0 twice"),
        ([0, 1], [[0.5, 0.5], [2.0, -1.0]], [0, 1], r"row 1 is \[ 2. -1.\]"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], [0, 1], r"row 0 is \[0.5 0.6\].*softmax"),
        ([0, 1], [[0.5, 0.5], [0.5, np.nan]], [0, 1], "probabilities holds NaN"),
        ([0, 1], [0.5, 0.5], [0, 1], r"got shapes \(2,\), \(2,\) and \(2,\)"),
        ([[0], [1]], [[0.5, 0.5], [0.5, 0.5]], [0, 1], r"got shapes \(2, 1\)"),
        ([0, 1], [[1.0], [1.0]], [0, 1], r"and C ≥ 1; got shapes \(2,\), \(2, 1\) and \(2,\)"),
        ([], np.zeros((0, 2)), [0, 1], "n ≥ 1"),
    ],
)
def test_unusable_probabilities_are_refused(score: Any, y: Any, rows: Any, classes: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        score(y, rows, classes)

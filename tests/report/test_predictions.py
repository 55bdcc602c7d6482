"""Held-out predictions on the page, against scikit-learn, SciPy and uncertainty-toolbox."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import uncertainty_toolbox as uct
from scipy.stats import laplace
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, confusion_matrix, r2_score

from distreduce.exceptions import InvalidInputError
from distreduce.report import HeldOut, HeldOutClasses
from distreduce.report.predictions import bin_confidence, describe_numbers, describe_predictions


@pytest.fixture
def gaussian(rng):
    mean = rng.normal(size=200)
    return HeldOut(mean + rng.normal(size=200), mean, np.full(200, 0.7))


@pytest.fixture
def shares(rng):
    proba = rng.dirichlet([1, 1, 1], size=300)
    names = np.array(["a", "b", "c"])
    return HeldOutClasses(names[[rng.choice(3, p=row) for row in proba]], proba, names)


def score(found, heading):
    return found.scores[0][found.headings.index(heading)]


def test_accuracy_is_that_of_scikit_learn(shares):
    expected = accuracy_score(shares.y, shares.classes[shares.proba.argmax(axis=1)])
    assert score(describe_predictions(shares), "accuracy") == f"{expected:.3f}"


def test_confusion_is_that_of_scikit_learn(shares):
    expected = confusion_matrix(shares.y, shares.classes[shares.proba.argmax(axis=1)])
    assert describe_predictions(shares).confusion == expected.tolist()


def test_reliability_is_that_of_scikit_learn(shares):
    confidence, right, share = bin_confidence(shares)
    correct = shares.y == shares.classes[shares.proba.argmax(axis=1)]
    expected = calibration_curve(correct, shares.proba.max(axis=1), n_bins=10)
    np.testing.assert_allclose(np.c_[right, confidence][share > 0], np.c_[expected])


def test_several_models_have_a_row_each(gaussian):
    found = describe_predictions({"first": gaussian, "second": gaussian})
    assert [row[0] for row in found.scores] == ["first", "second"]


def test_a_confusion_of_many_classes_is_left_out_with_a_word():
    names = np.arange(31)
    found = describe_predictions(HeldOutClasses(names, np.eye(31), names))
    assert not found.confusion and "31 classes" in found.notes[-1]


@pytest.mark.parametrize("wrong", [{}, {"a": 1}, 3, "text"])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="HeldOut"):
        describe_predictions(wrong)


def test_both_kinds_together_are_refused(gaussian, shares):
    with pytest.raises(InvalidInputError, match="one kind"):
        describe_predictions({"a": gaussian, "b": shares})


def test_without_predictions_there_is_nothing():
    assert describe_predictions(None) is None


@pytest.fixture
def own(gaussian):
    """The same means with quantiles of Laplace's distribution around them."""
    spread = laplace(gaussian.mean, 0.3)
    levels = np.abs(2 * spread.cdf(gaussian.y) - 1)
    return HeldOut(gaussian.y, gaussian.mean, gaussian.std, spread.ppf(0.05), spread.ppf(0.95), levels)


def bars(figure):
    return re.search(r'<path d="([^"]*)"[^>]*stroke-opacity: 0.3', figure.drawing).group(1)


def curve(figure):
    return re.search(r'<path d="([^"]*)"[^>]*stroke: var\(--c0\)', figure.drawing).group(1)


def test_r2_is_that_of_scikit_learn(gaussian):
    assert score(describe_numbers({"m": gaussian}), "R²") == f"{r2_score(gaussian.y, gaussian.mean):.3f}"


def test_r2_of_several_targets_is_their_mean(rng):
    y = rng.normal(size=(30, 2)) * [1.0, 100.0]
    mean = y + rng.normal(size=(30, 2)) * [0.9, 10.0]
    found = describe_numbers({"m": HeldOut(y, mean, np.ones_like(y))})
    assert score(found, "R²") == f"{r2_score(y, mean):.3f}" and "RMSE" not in found.headings


def test_mace_is_that_of_uncertainty_toolbox(gaussian):
    expected = uct.mean_absolute_calibration_error(gaussian.mean, gaussian.std, gaussian.y, num_bins=99)
    assert score(describe_numbers({"m": gaussian}), "calibration error (MACE)") == f"{expected:.3f}"


def test_the_log_density_is_in_units_of_the_scale(gaussian):
    wide = HeldOut(*(1000 * part for part in (gaussian.y, gaussian.mean, gaussian.std)), scale=1000.0)
    narrow, found = describe_numbers({"m": gaussian}), describe_numbers({"m": wide})
    assert score(found, "mean log density") == score(narrow, "mean log density")
    assert "units of the target’s standard deviation" in found.notes[0] and "units of the target." in narrow.notes[0]


def test_own_quantiles_are_judged_and_drawn(gaussian, own):
    inside = np.mean((own.low <= own.y) & (own.y <= own.high))
    found, other = describe_numbers({"m": own}), describe_numbers({"m": gaussian})
    assert score(found, "share in 90 % intervals") == f"{inside:.3f}" != score(other, "share in 90 % intervals")
    assert bars(found.figures[0]) != bars(other.figures[0]) and "model’s own 5 %" in found.figures[0].caption
    assert curve(found.figures[1]) != curve(other.figures[1]) and "model’s own quantiles" in found.notes[0]


def test_the_quantiles_of_a_gaussian_give_the_page_of_a_gaussian(gaussian):
    half = 1.6449 * gaussian.std
    found = describe_numbers(
        {"m": HeldOut(gaussian.y, gaussian.mean, gaussian.std, gaussian.mean - half, gaussian.mean + half)}
    )
    expected = describe_numbers({"m": gaussian})
    assert found.scores == expected.scores and bars(found.figures[0]) == bars(expected.figures[0])


def test_bounds_without_levels_are_counted(own):
    found = describe_numbers({"m": HeldOut(own.y, own.mean, own.std, own.low, own.high)})
    assert score(found, "share in 90 % intervals") == score(describe_numbers({"m": own}), "share in 90 % intervals")


def test_a_model_without_own_quantiles_is_named(own, gaussian):
    assert "(b: of a Gaussian)" in describe_numbers({"a": own, "b": gaussian}).notes[0]


def test_several_targets_have_a_drawing_each(rng):
    y = rng.normal(size=(30, 2))
    for given, names in ((y, (0, 1)), (pd.DataFrame(y, columns=["rent", "price"]), ("rent", "price"))):
        titles = [figure.title for figure in describe_numbers({"m": HeldOut(given, y + 0.1, np.ones_like(y))}).figures]
        assert titles == [*(f"Predicted against true, target {name} (m)" for name in names), "Calibration"]


def test_a_prediction_without_spread_is_refused():
    with pytest.raises(InvalidInputError, match="std must be above 0"):
        describe_numbers({"m": HeldOut([1.0], [1.0], [0.0])})


@pytest.mark.parametrize(
    ("low", "high", "words"), [([0.0], None, "both"), ([2.0], [1.0], "above high"), ([0.0, 0.0], [1.0, 1.0], "shape")]
)
def test_bounds_of_no_use_are_refused(low, high, words):
    with pytest.raises(InvalidInputError, match=words):
        describe_numbers({"m": HeldOut([1.0], [1.0], [1.0], low, high)})


def test_two_units_are_refused(gaussian):
    other = HeldOut(gaussian.y, gaussian.mean, gaussian.std, scale=2.0)
    with pytest.raises(InvalidInputError, match="scale"):
        describe_numbers({"a": gaussian, "b": other})


def test_what_a_model_is_stands_below_the_scores(gaussian):
    found = describe_predictions({"a": gaussian, "b": replace(gaussian, about="a plain model.")})
    assert found.notes[0] == "b: a plain model."

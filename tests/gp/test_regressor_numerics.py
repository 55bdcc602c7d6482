"""Awkward data: finite predictions, or an error with a name."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from distreduce.exceptions import DistReduceError, InvalidInputError, NumericalError
from distreduce.gp import GPRegressor, SDRGPRegressor
from distreduce.gp import _exact as exact

pytestmark = pytest.mark.usefixtures("light")
MODELS = {
    "plain": GPRegressor(gp_steps=30),
    "default": SDRGPRegressor(gp_steps=3, random_state=0),
    "paper": SDRGPRegressor.paper(random_state=0),
    "prototypes": SDRGPRegressor(n_prototypes=5, experts=[], gp_steps=3, random_state=0),
}
RNG = np.random.default_rng(0)
X, NOISE = RNG.normal(size=(40, 3)), 0.1 * RNG.normal(size=40)
Y = np.sin(X[:, 0]) + NOISE
OUTLIERS = np.where(np.arange(40) % 13 == 0, 1e6, Y)
CASES = {
    "plain units": (X, Y),
    "duplicate rows": (np.repeat(X[:10], 4, axis=0), Y),
    "duplicates that agree": (np.repeat(X[:10], 4, axis=0), np.repeat(Y[:10], 4)),
    "constant column": (np.c_[X, np.full(40, 0.1)], Y),
    "constant y": (X, np.full(40, 0.1)),
    "constant y of two": (X, np.c_[Y, np.full(40, 7.0)]),
    "two values of y": (X, np.sign(Y)),
    "tiny x": (X * 1e-150, Y),
    "huge x": (X * 1e150, Y),
    "scales of all sizes": (X * [1e-150, 1.0, 1e150], Y),
    "x with an offset": (X + 1e9, Y),
    "tiny y": (X, Y * 1e-150),
    "huge y": (X, Y * 1e150),
    "y with an offset": (X, Y + 1e9),
    "collinear": (X[:, :1] * [1.0, -2.0, 3.0], Y),
    "more features than samples": (RNG.normal(size=(12, 60)), Y[:12]),
    "many features": (RNG.normal(size=(20, 200)), Y[:20]),
    "outliers in y": (X, OUTLIERS),
    "an outlier in x": (np.r_[X[:-1], [[1e8, 0, 0]]], Y),
    "noise only": (X, NOISE),
    "integers": (np.round(X).astype(int), np.round(Y).astype(int)),
    "three samples": (X[:3], Y[:3]),
    "two samples": (X[:2], Y[:2]),
    "one feature": (X[:, :1], Y),
}


@cache
def predicted(name, case):
    """Means and standard deviations of the training rows."""
    inputs, target = CASES[case]
    return clone(MODELS[name]).fit(inputs, target).predict(inputs, return_std=True)


@pytest.mark.parametrize("case", [case for case in CASES if case != "constant y"])
@pytest.mark.parametrize("name", ["plain", "default"])
def test_predictions_are_finite(name, case):
    mean, std = predicted(name, case)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["paper", "prototypes"])
def test_predictions_are_finite_or_an_error_says_why(name, case):
    inputs, target = CASES[case]
    try:
        mean, std = clone(MODELS[name]).fit(inputs, target).predict(inputs, return_std=True)
    except DistReduceError as error:
        assert len(str(error)) > 30
    else:
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()


@pytest.mark.parametrize("case", ["tiny x", "huge x", "x with an offset", "tiny y", "huge y", "constant column"])
@pytest.mark.parametrize("name", ["plain", "default"])
def test_awkward_units_cost_no_accuracy(name, case):
    def relative_error(case):
        target = CASES[case][1]
        return np.std((predicted(name, case)[0] - target) / target.std())

    assert relative_error(case) == pytest.approx(relative_error("plain units"), abs=0.02)


def test_a_constant_target_is_predicted_with_certainty():
    mean, std = GPRegressor().fit(X, np.full(40, 3.0)).predict(X + 1, return_std=True)
    np.testing.assert_allclose(mean, 3.0, atol=1e-6)
    assert std.max() < 0.01


def test_a_constant_target_cannot_be_reduced_for():
    with pytest.raises(InvalidInputError, match=r"constant \(7\).*GPRegressor"):
        SDRGPRegressor().fit(X, np.full(40, 7.0))


def test_equal_samples_cannot_be_reduced():
    with pytest.raises(InvalidInputError, match="X"):
        SDRGPRegressor().fit(np.ones((10, 2)), np.arange(10.0))


@pytest.mark.parametrize("limit", [{}, {"max_reduction_samples": 20}])
def test_more_prototypes_than_samples_are_refused(limit):
    with pytest.raises(InvalidInputError, match="fewer prototypes"):
        SDRGPRegressor(n_prototypes=50 - limit.get("max_reduction_samples", 0), **limit).fit(X, Y)


@pytest.mark.parametrize("learning_rate", [1e2, 1e4, 1e8])
def test_steps_that_are_far_too_long_leave_finite_predictions(learning_rate):
    model = GPRegressor(gp_optimizer="adam", gp_lr=learning_rate).fit(X, Y)
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_one_sample_is_refused():
    with pytest.raises(ValueError, match="minimum of 2"):
        GPRegressor().fit(X[:1], Y[:1])


@pytest.mark.parametrize("estimator", [GPRegressor()])
def test_too_many_samples_for_an_exact_gp_are_refused_before_any_work(estimator):
    with pytest.raises(InvalidInputError, match="n_prototypes"):
        estimator.fit(np.zeros((10_001, 1)), np.arange(10_001.0))


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_a_likelihood_that_is_never_a_number_is_a_named_error(monkeypatch, optimizer):
    monkeypatch.setattr(exact, "negative_log_likelihood", lambda at, *_: (np.nan, np.full_like(at, np.nan)))
    with pytest.raises(NumericalError, match="scale X and y"):
        GPRegressor(gp_optimizer=optimizer).fit(X, Y)


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_a_likelihood_that_fails_in_mid_training_leaves_a_model_that_predicts(monkeypatch, optimizer):
    real, calls = exact.negative_log_likelihood, []

    def fails_later(at, *problem):
        calls.append(at)
        return real(at, *problem) if len(calls) < 8 else (np.nan, np.full_like(at, np.nan))

    monkeypatch.setattr(exact, "negative_log_likelihood", fails_later)
    assert GPRegressor(gp_optimizer=optimizer).fit(X, Y).score(X, Y) > 0.5


@pytest.mark.parametrize("kind", [GPRegressor, SDRGPRegressor])
def test_targets_whose_sums_overflow_are_refused_by_their_size(kind):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(InvalidInputError, match=r"y holds 1.7e\+308: sums of such numbers overflow"):
        kind().fit(X, np.where(X[:, 0] > 0, 1.7e308, -1.7e308))

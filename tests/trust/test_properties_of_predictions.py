"""Gaussian processes on any problem: finite means, positive deviations, probabilities that sum to one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose
from trust.problems import CLASSES, NUMBERS, Problem, holds_for, problems, quietly

from distreduce import SDRGPClassifier, SDRGPRegressor

SMALL: dict[str, Any] = {"gp_steps": 5, "random_state": 0, "n_jobs": 1}


def rows_to_predict(problem: Problem) -> np.ndarray:
    """Samples of the fit, others near them, and some far away."""
    X = problem.X[:10]
    return np.vstack([X, X[::-1] + 0.1 * np.abs(problem.X).max(), 100.0 * X])


@holds_for(problems(NUMBERS, most=60), examples=4)
def test_means_are_finite_and_deviations_positive(problem: Problem) -> None:
    model = quietly(SDRGPRegressor(n_prototypes=problem.model["n_prototypes"], **SMALL).fit, problem.X, problem.y)
    mean, std = quietly(model.predict, rows_to_predict(problem), return_std=True)
    assert (np.isfinite(mean).all(), np.isfinite(std).all(), (std > 0).all()) == (True, True, True)


@holds_for(problems(CLASSES, most=40), examples=3)
def test_probabilities_sum_to_one(problem: Problem) -> None:
    model = quietly(SDRGPClassifier(2, n_draws=8, **SMALL).fit, problem.X, problem.y)
    shares = quietly(model.predict_proba, rows_to_predict(problem))
    assert (shares >= 0).all()
    assert_allclose(shares.sum(axis=1), 1.0, rtol=0, atol=1e-9)

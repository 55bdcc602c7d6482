"""Scores of Gaussian predictions of numbers, and of class probabilities.

:mod:`distreduce.metrics.calibration` describes and checks the arrays. A score too large for a float is infinite (a
residual of 1e200 standard deviations has a log density of −inf), never NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from distreduce.metrics.calibration import (
    Weights,
    average,
    expected_calibration_error,
    interval_coverage,
    mean_absolute_calibration_error,
    read_gaussian,
    read_probabilities,
    read_residuals,
)

# As in scikit-learn's log_loss: one impossible event costs 36 nats, not an infinity that hides all other samples.
PROBABILITY_FLOOR = float(np.finfo(np.float64).eps)


def regression_scores(y: ArrayLike, mean: ArrayLike, std: ArrayLike, sample_weight: Weights = None) -> dict[str, float]:
    """All scores of Gaussian predictions in one call.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, c)
        Observations.
    mean : array-like of the shape of y
        Predictive means.
    std : array-like of the shape of y
        Predictive standard deviations, noise included.
    sample_weight : array-like of shape (n,), optional
        Weights of the samples in all scores.

    Returns
    -------
    dict
        ``mll``, ``nll``, ``mse``, ``crps``, ``mace`` (interval mode, 99 levels) and ``coverage_90``, the
        fraction of observations in their central 90 % interval.

    Examples
    --------
    >>> scores = regression_scores([0.0, 1.0], [0.1, 0.8], [0.2, 0.2])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'mll': 0.378, 'nll': -0.378, 'mse': 0.025, 'crps': 0.093, 'mace': 0.146, 'coverage_90': 1.0}
    """
    weights: dict[str, Any] = {"sample_weight": sample_weight}
    return {
        "mll": mean_log_likelihood(y, mean, std, **weights),
        "nll": negative_log_likelihood(y, mean, std, **weights),
        "mse": mean_squared_error(y, mean, **weights),
        "crps": crps(y, mean, std, **weights),
        "mace": mean_absolute_calibration_error(y, mean, std, **weights),
        "coverage_90": interval_coverage(y, mean, std, 0.9, **weights),
    }


def classification_scores(
    y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, sample_weight: Weights = None
) -> dict[str, float]:
    """All scores of class probabilities in one call.

    Parameters
    ----------
    y : array-like of shape (n,)
        True classes.
    probabilities : array-like of shape (n, C)
        Predicted probabilities; rows sum to 1.
    classes : array-like of shape (C,)
        The class of each column, such as ``classes_`` of a classifier.
    sample_weight : array-like of shape (n,), optional
        Weights of the samples in all scores.

    Returns
    -------
    dict
        ``mlp``, ``accuracy``, ``ece`` (top label, 15 bins) and ``brier``.

    Examples
    --------
    >>> scores = classification_scores(["a", "a"], [[0.9, 0.1], [0.2, 0.8]], ["a", "b"])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'mlp': -0.857, 'accuracy': 0.5, 'ece': 0.45, 'brier': 0.65}
    """
    return {
        "mlp": mean_log_probability(y, probabilities, classes, sample_weight),
        "accuracy": accuracy(y, probabilities, classes, sample_weight),
        "ece": expected_calibration_error(y, probabilities, classes, sample_weight=sample_weight),
        "brier": brier_score(y, probabilities, classes, sample_weight),
    }


def mean_log_likelihood(y: ArrayLike, mean: ArrayLike, std: ArrayLike, sample_weight: Weights = None) -> float:
    """MLL = (1/N) Σ_i log N(y_i | mean_i, std_i²) over all N numbers; higher is better.

    Parameters are those of :func:`regression_scores`; std is that of an observation, not of the latent function.

    Examples
    --------
    >>> round(mean_log_likelihood([0.0], [0.0], [1.0]), 4)
    -0.9189
    """
    residuals, spread = read_gaussian(y, mean, std)
    with np.errstate(over="ignore"):
        # log(spread) instead of the log of a density, which underflows far from the mean.
        densities = -0.5 * (residuals / spread) ** 2 - np.log(spread)
        return average(densities, sample_weight) - 0.5 * float(np.log(2 * np.pi))


def negative_log_likelihood(y: ArrayLike, mean: ArrayLike, std: ArrayLike, sample_weight: Weights = None) -> float:
    """NLL = −MLL of :func:`mean_log_likelihood`; lower is better."""
    return -mean_log_likelihood(y, mean, std, sample_weight)


def mean_squared_error(y: ArrayLike, mean: ArrayLike, sample_weight: Weights = None) -> float:
    """MSE = (1/N) Σ_i (y_i − mean_i)² over all N numbers."""
    with np.errstate(over="ignore"):
        return average(read_residuals(y, mean) ** 2, sample_weight)


def crps(y: ArrayLike, mean: ArrayLike, std: ArrayLike, sample_weight: Weights = None) -> float:
    """Continuous ranked probability score [1]_, ∫ (F(t) − 1[t ≥ y])² dt, averaged over all numbers; lower is better.

    For a Gaussian with u = (y − mean)/std: (y − mean)(2Φ(u) − 1) + std (2φ(u) − 1/√π), in the units of y. Parameters
    are those of :func:`regression_scores`.

    References
    ----------
    .. [1] Gneiting, Raftery (2007). Strictly proper scoring rules, prediction, and estimation. Journal of the American
       Statistical Association 102.

    Examples
    --------
    >>> round(crps([0.0], [0.0], [1.0]), 4)
    0.2337
    """
    residuals, spread = read_gaussian(y, mean, std)
    with np.errstate(over="ignore"):
        # 2Φ(u) − 1 = erf(u/√2), without cancellation near u = 0.
        u = residuals / spread
        density = np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)
        return average(residuals * erf(u / np.sqrt(2)) + spread * (2 * density - 1 / np.sqrt(np.pi)), sample_weight)


def mean_log_probability(
    y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, sample_weight: Weights = None
) -> float:
    """MLP = (1/n) Σ_i log max(p_i(y_i), ε), the paper's score of the true class; higher is better.

    The floor ε = 2.2e-16, the precision of a float, keeps the mean finite: no sample contributes less than −36.04.
    Parameters are those of :func:`classification_scores`.

    Examples
    --------
    >>> round(mean_log_probability([0, 1], [[0.5, 0.5], [1.0, 0.0]], [0, 1]), 2)
    -18.37
    """
    codes, rows = read_probabilities(y, probabilities, classes)
    logs = np.log(np.maximum(rows[np.arange(len(codes)), codes], PROBABILITY_FLOOR))
    return average(logs, sample_weight)


def accuracy(y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, sample_weight: Weights = None) -> float:
    """Fraction of samples whose most probable class, the first among equals, is the true one."""
    codes, rows = read_probabilities(y, probabilities, classes)
    return average(rows.argmax(axis=1) == codes, sample_weight)


def brier_score(y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, sample_weight: Weights = None) -> float:
    """Brier score [1]_ (1/n) Σ_i Σ_k (p_ik − 1[y_i = k])², between 0 and 2; lower is better.

    For two classes this is twice the default result of scikit-learn's ``brier_score_loss``, because the sum includes
    both. Parameters are those of :func:`classification_scores`.

    References
    ----------
    .. [1] Brier (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78.
    """
    codes, rows = read_probabilities(y, probabilities, classes)
    true = np.zeros_like(rows)
    true[np.arange(len(codes)), codes] = 1.0
    return average(((rows - true) ** 2).sum(axis=1), sample_weight)

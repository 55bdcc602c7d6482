"""Scores of held-out predictions, and the calibration of predicted quantiles, which need not be Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import r2_score

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import calibration
from distreduce.metrics.calibration import Weights, average, read_gaussian, read_numbers, read_weights, share_below
from distreduce.metrics.prediction import classification_scores, mean_squared_error, regression_scores

LEVELS = np.linspace(0, 1, 99)  # those of regression_scores
NINE_IN_TEN = 0.9  # the level of coverage_90, which is not among them


def interval_levels(model: Any, X: Any, y: Array) -> Array:
    """Probability of the smallest central interval of the model that contains each y; 1 if none does.

    The model has `predict_quantiles`, as :class:`distreduce.SDRGPRegressor` does. With its distribution function F this
    is |2 F(y) − 1|, rounded up to the next level that a score uses.
    """
    # Without both ends: the interval of level 0 is a point, that of level 1 contains every number.
    inner = np.unique(np.r_[LEVELS, NINE_IN_TEN])[1:-1]
    # One call for all bounds: a model may embed X anew in each.
    low, high = np.split(model.predict_quantiles(X, np.r_[(1 - inner) / 2, (1 + inner) / 2]), 2, axis=-1)
    held = (low <= y[..., None]) & (y[..., None] <= high)
    # Central intervals are nested, so the first that contains y is the smallest.
    return np.where(held.any(axis=-1), inner[held.argmax(axis=-1)], 1.0)


def score_classes(y: ArrayLike, proba: ArrayLike, classes: ArrayLike, weights: Weights = None) -> dict[str, float]:
    """:func:`distreduce.metrics.classification_scores`, and ``ece_by_chance``, which few rows alone would bring."""
    by_chance = calibration.calibration_error_by_chance(np.asarray(proba, dtype=np.float64), weights)
    return {**classification_scores(y, proba, classes, weights), "ece_by_chance": by_chance}


def judge_numbers(model: Any, X: Any, y: Array) -> dict[str, Array]:
    """`levels` and `log_density` of targets for :func:`held_out_scores`; none if the model has a Gaussian alone."""
    if not hasattr(model, "predict_quantiles"):
        return {}
    return {"levels": interval_levels(model, X, y), "log_density": model.log_density(X, y)}


def level_curve(levels: Array, sample_weight: Weights = None) -> tuple[Array, Array]:
    """:func:`distreduce.metrics.calibration_curve` in interval mode, from the result of :func:`interval_levels`."""
    return LEVELS.copy(), _shares(levels, LEVELS, sample_weight)


def level_scores(levels: Array, sample_weight: Weights = None) -> dict[str, float]:
    """``mace`` and ``coverage_90`` of :func:`distreduce.metrics.regression_scores`, from the levels."""
    expected, observed = level_curve(levels, sample_weight)
    inside = float(_shares(levels, NINE_IN_TEN, sample_weight))
    return {"mace": float(np.abs(observed - expected).mean()), "coverage_90": inside}


def _shares(levels: Array, expected: Array | float, sample_weight: Weights) -> Array:
    order = np.argsort(levels, axis=None)
    return share_below(levels.ravel()[order], read_weights(sample_weight, levels.size)[order], expected, "right")


LARGE = 1e100


def held_out_scores(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    levels: ArrayLike | None = None,
    log_density: ArrayLike | None = None,
    sample_weight: Weights = None,
) -> dict[str, float]:
    """``r2`` (mean over targets), ``rmse`` (of a single target, in its units) and, with std, the `regression_scores`.

    `scale` (c,) is the unit of each target in all scores except ``rmse``, such as its standard deviation in the
    training rows. With `levels`, which :func:`~distreduce.metrics.held_out.interval_levels` finds, ``mace`` and
    ``coverage_90`` are those of the model's own intervals instead of Gaussian ones. With `log_density`, that of each y
    under the model, ``mll`` and ``nll`` are the model's own as well. `sample_weight` (n,) counts in all.
    """
    truth, said = read_numbers("y", y), read_numbers("mean", mean)
    # Squares of very large targets would overflow.
    size = float(np.abs(truth).max(initial=0.0))
    unit = size if size > LARGE else 1.0
    error = mean_squared_error(truth / unit, said / unit, sample_weight)  # raises if the two cannot be compared
    scores = {} if std is None else _gaussian(truth, said, std, scale, sample_weight)
    if levels is not None:
        scores |= level_scores(_levels(levels, truth), sample_weight)  # replace the Gaussian mace and coverage_90
    if log_density is not None:
        own = np.asarray(log_density, dtype=np.float64).reshape(truth.shape) + np.log(1.0 if scale is None else scale)
        own = own.ravel()
        scores |= {"mll": average(own, sample_weight), "nll": -average(own, sample_weight)}
    many = len(truth) > 1  # undefined for one sample
    r2 = float(r2_score(truth / unit, said / unit, sample_weight=sample_weight)) if many else float("nan")
    # Targets of different units have no common error.
    rmse = {"rmse": float(unit * np.sqrt(error))} if truth.size == len(truth) else {}
    return {"r2": r2, **rmse, **scores}


def _gaussian(
    y: Array, mean: Array, std: ArrayLike, scale: ArrayLike | None, sample_weight: Weights
) -> dict[str, float]:
    read_gaussian(y, mean, std)  # checks shapes before the division broadcasts
    unit = read_numbers("scale", 1.0 if scale is None else scale)
    if unit.shape not in ((), y.shape[1:]) or not (unit > 0).all():
        raise InvalidInputError(f"scale must be a number above 0, or one for each target; got {unit.tolist()!s:.80}.")
    return regression_scores(y / unit, mean / unit, np.asarray(std, dtype=np.float64) / unit, sample_weight)


def _levels(levels: ArrayLike, y: Array) -> Array:
    found = read_numbers("levels", levels)
    if found.shape != y.shape or found.min() < 0 or found.max() > 1:
        raise InvalidInputError(f"levels must be numbers from 0 to 1 in the shape of y, {y.shape}; got {found.shape}.")
    return found

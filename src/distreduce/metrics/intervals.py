"""Calibration of the quantiles that a model predicts, which need not be Gaussian."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.typing import Array

NINE_IN_TEN = 0.9  # the level of coverage_90, which is not among the 99 levels


class QuantilePredictor(Protocol):
    """A fitted model with quantiles, such as :class:`distreduce.SDRGPRegressor`."""

    def predict_quantiles(self, X: Any, quantiles: Any = ...) -> Array:
        """Quantiles (n, q) of one target, or (n, t, q) of several."""
        ...


def observed_shares(model: QuantilePredictor, X: Any, y: Array, levels: Array) -> Array:
    """Fraction of the observations y in the model's central interval of each level between 0 and 1.

    For Gaussian quantiles this is the interval mode of :func:`distreduce.metrics.calibration_curve`.
    """
    shares = np.array(levels, dtype=np.float64)  # exact at 0 and 1, where the interval is a point or everything
    inner = (shares > 0) & (shares < 1)
    shares[inner] = _contains(model, X, y, shares[inner]).reshape(-1, inner.sum()).mean(axis=0)
    return shares


def interval_levels(model: QuantilePredictor, X: Any, y: Array, n_levels: int = 99) -> Array:
    """Probability of the smallest central interval of the model that contains each y; 1 if none does.

    With the distribution function F of the model this is |2 F(y) − 1|, rounded up to the next level that a score uses:
    `n_levels` steps and 0.9.
    """
    # Without both ends: the interval of level 0 is a point, that of level 1 contains every number.
    inner = np.unique(np.r_[np.linspace(0, 1, n_levels), NINE_IN_TEN])[1:-1]
    held = _contains(model, X, y, inner)
    # Central intervals are nested, so the first that contains y is the smallest.
    return np.where(held.any(axis=-1), inner[held.argmax(axis=-1)], 1.0)


def level_curve(levels: Array, n_levels: int = 99) -> tuple[Array, Array]:
    """:func:`distreduce.metrics.calibration_curve` in interval mode, from the result of :func:`interval_levels`."""
    expected = np.linspace(0, 1, n_levels)
    return expected, _shares(levels, expected)


def level_scores(levels: Array, n_levels: int = 99) -> dict[str, float]:
    """``mace`` and ``coverage_90`` of :func:`distreduce.metrics.regression_scores`, from the levels."""
    expected, observed = level_curve(levels, n_levels)
    return {"mace": float(np.abs(observed - expected).mean()), "coverage_90": float(_shares(levels, NINE_IN_TEN))}


def interval_scores(model: QuantilePredictor, X: Any, y: Array, n_levels: int = 99) -> dict[str, float]:
    """The :func:`level_scores` of the model's own intervals."""
    return level_scores(interval_levels(model, X, y, n_levels), n_levels)


def _contains(model: QuantilePredictor, X: Any, y: Array, levels: Array) -> NDArray[np.bool_]:
    """Whether the central interval of each level contains y: the shape of y and an axis of levels."""
    # One call for all bounds: a model may embed X anew in each.
    low, high = np.split(model.predict_quantiles(X, np.r_[(1 - levels) / 2, (1 + levels) / 2]), 2, axis=-1)
    return np.asarray((low <= y[..., None]) & (y[..., None] <= high))


def _shares(levels: Array, expected: Array | float) -> Array:
    return np.asarray(np.searchsorted(np.sort(levels, axis=None), expected, side="right") / np.size(levels))

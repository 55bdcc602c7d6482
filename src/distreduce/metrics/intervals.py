"""Calibration of the quantiles that a model predicts, which need not be Gaussian."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from distreduce._utils.typing import Array

LEVELS = np.linspace(0, 1, 99)  # those of regression_scores
NINE_IN_TEN = 0.9  # the level of coverage_90, which is not among them


class QuantilePredictor(Protocol):
    """A fitted model with quantiles, such as :class:`distreduce.SDRGPRegressor`."""

    def predict_quantiles(self, X: Any, quantiles: Any = ...) -> Array:
        """Quantiles (n, q) of one target, or (n, t, q) of several."""
        ...


def interval_levels(model: QuantilePredictor, X: Any, y: Array) -> Array:
    """Probability of the smallest central interval of the model that contains each y; 1 if none does.

    With the distribution function F of the model this is |2 F(y) − 1|, rounded up to the next level that a score uses.
    """
    # Without both ends: the interval of level 0 is a point, that of level 1 contains every number.
    inner = np.unique(np.r_[LEVELS, NINE_IN_TEN])[1:-1]
    # One call for all bounds: a model may embed X anew in each.
    low, high = np.split(model.predict_quantiles(X, np.r_[(1 - inner) / 2, (1 + inner) / 2]), 2, axis=-1)
    held = (low <= y[..., None]) & (y[..., None] <= high)
    # Central intervals are nested, so the first that contains y is the smallest.
    return np.where(held.any(axis=-1), inner[held.argmax(axis=-1)], 1.0)


def level_curve(levels: Array) -> tuple[Array, Array]:
    """:func:`distreduce.metrics.calibration_curve` in interval mode, from the result of :func:`interval_levels`."""
    return LEVELS.copy(), _shares(levels, LEVELS)


def level_scores(levels: Array) -> dict[str, float]:
    """``mace`` and ``coverage_90`` of :func:`distreduce.metrics.regression_scores`, from the levels."""
    expected, observed = level_curve(levels)
    return {"mace": float(np.abs(observed - expected).mean()), "coverage_90": float(_shares(levels, NINE_IN_TEN))}


def _shares(levels: Array, expected: Array | float) -> Array:
    return np.asarray(np.searchsorted(np.sort(levels, axis=None), expected, side="right") / np.size(levels))

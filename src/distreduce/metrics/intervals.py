"""Calibration of a model's own quantiles, which need not be those of a Gaussian."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class QuantilePredictor(Protocol):
    """A fitted model with quantiles, such as :class:`distreduce.SDRGPRegressor`."""

    def predict_quantiles(self, X: Any, quantiles: Any = ...) -> Array:
        """Quantiles (n, q) of one target, or (n, t, q) of several."""
        ...


def observed_shares(model: QuantilePredictor, X: Any, y: Array, levels: Array) -> Array:
    """Share of the observations y in the model's central interval of each level, a number from 0 to 1.

    For Gaussian quantiles this is the interval mode of :func:`distreduce.metrics.calibration_curve`.
    """
    shares = np.array(levels, dtype=np.float64)  # at the ends, where an interval is a point or everything, exact
    inner = (shares > 0) & (shares < 1)
    bounds = model.predict_quantiles(X, np.r_[(1 - shares[inner]) / 2, (1 + shares[inner]) / 2])
    low, high = np.split(bounds, 2, axis=-1)
    held = (low <= y[..., None]) & (y[..., None] <= high)
    shares[inner] = held.reshape(-1, inner.sum()).mean(axis=0)
    return shares


def interval_scores(model: QuantilePredictor, X: Any, y: Array, n_levels: int = 99) -> dict[str, float]:
    """``mace`` and ``coverage_90`` as in :func:`distreduce.metrics.regression_scores`, of the model's own intervals."""
    levels = np.linspace(0, 1, n_levels)
    error = np.abs(observed_shares(model, X, y, levels) - levels).mean()
    return {"mace": float(error), "coverage_90": float(observed_shares(model, X, y, np.array([0.9]))[0])}

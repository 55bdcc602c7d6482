"""Standardise the targets of the regressors for training, and return predictions in their units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distreduce._utils.typing import Array


def spread(table: Array, weights: Array | None = None) -> Array:
    """Standard deviation of each column, 1 for a constant one; a weight of two is the row twice.

    Columns are first divided by a power of two near their size, which changes no digit, because squares of numbers such
    as 1e200 or 1e-200 overflow or underflow.
    """
    unit = np.ldexp(1.0, np.frexp(np.abs(table).max(axis=0))[1] - 1)
    scaled = table / unit
    if weights is None or (weights == 1.0).all():
        std = scaled.std(axis=0) * unit
    else:
        std = np.sqrt(weights @ (scaled - weights @ scaled / weights.sum()) ** 2 / weights.sum()) * unit
        table = table[weights > 0]
    # The mean of equal numbers may differ from them in the last digit, and their standard deviation from 0.
    constant = table.max(axis=0) == table.min(axis=0)
    return np.where(constant, 1.0, std)


def feature_spread(X: Array, weights: Array | None = None) -> Array:
    """Standard deviation of each feature; for a constant one, its size if that is above 1.

    A constant feature has no effect on distances, but one of 1e200 on a scale of 1 would leave no digits for others.
    """
    constant = X.max(axis=0) == X.min(axis=0)
    return np.where(constant, np.maximum(np.abs(X).max(axis=0), 1.0), spread(X, weights))


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target, and whether y was a table (n, t) or a single column (n,)."""

    mean: Array
    std: Array
    is_table: bool

    @classmethod
    def of(cls, y: Array, weights: Array | None = None) -> TargetScale:
        """The scale of targets (n,) or (n, t); a constant target keeps its unit."""
        table, h = y.reshape(len(y), -1), np.ones(len(y)) if weights is None else weights
        # The last bit of a sum depends on the order, and SDR makes more of it: the values decide the order.
        order = np.lexsort((h, *table.T[::-1]))
        table, h = table[order], h[order]
        mean = table.mean(axis=0) if (h == 1.0).all() else h @ table / h.sum()
        return cls(mean, spread(table, h), y.ndim == 2)

    def standardise(self, y: Array) -> Array:
        """Targets of mean 0 and standard deviation 1: (n,) for one target, (n, t) for several."""
        table = (y.reshape(len(y), -1) - self.mean) / self.std
        return table[:, 0] if table.shape[1] == 1 else table

    def in_units(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Predictions in the units of y and in its shape."""
        centre = mean.reshape(len(mean), -1) * self.std + self.mean
        spread = std.reshape(len(std), -1) * self.std
        return (centre, spread) if self.is_table else (centre[:, 0], spread[:, 0])

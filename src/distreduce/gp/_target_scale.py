"""Features and targets as experts see them: standardised, and targets warped if they are skewed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import kurtosis, skew, yeojohnson, yeojohnson_normmax

from distreduce._utils.numerics import evenly_spaced
from distreduce._utils.typing import Array, Index
from distreduce.kernels import RBF
from distreduce.mapping.left_out import left_out_error
from distreduce.mapping.relevance import median_length_scale

SCALING_ROWS = 300  # samples that decide whether features are standardised


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


def choose_feature_scale(X: Array, targets: Array, weights: Array, groups: Index | None, scaling: str) -> Array:
    """What features (n, d) are divided by: the spread of each, or one for all if that predicts left-out targets better.

    `scaling` is "auto"; "standard" takes the spread of each in any case, and "none" leaves the features as they are.
    """
    if scaling == "none":
        return np.ones(X.shape[1])
    each = feature_spread(X, weights)
    if scaling == "standard":
        return each
    # A constant feature has no spread: one of 7e200 would leave no digits for the others.
    varies = X.max(axis=0) > X.min(axis=0)
    most = each[varies].max()
    common = np.where(varies, most * float(np.sqrt(np.mean((each[varies] / most) ** 2))), each)
    rows = evenly_spaced(len(X), SCALING_ROWS)
    own = None if groups is None else groups[rows]
    errors = [_left_out_error(X[rows] / scale, targets[rows], own) for scale in (each, common)]
    return common if errors[1] < errors[0] else each


def number_groups(inputs: Array, groups: Index | None) -> Index:
    """Number the groups that are left out together; without any, samples with equal features are one."""
    return np.unique(inputs if groups is None else groups, axis=0, return_inverse=True)[1].ravel()


def _left_out_error(inputs: Array, targets: Array, groups: Index | None) -> float:
    """Squared error of left-out targets under kernel ridge regression with the median length scale."""
    if len(inputs) < 4:
        return 0.0
    K = RBF(median_length_scale(inputs, np.ones(len(inputs))))(inputs)
    centred = targets - targets.mean(axis=0)
    own = number_groups(inputs, groups)
    return min(left_out_error(K, centred, ridge, own) for ridge in (0.01, 0.1, 1.0))


# What targets can be, by number: anything, amounts and counts, shares.
RANGES = np.array([[-np.inf, np.inf], [0.0, np.inf], [0.0, 1.0]])


@dataclass(frozen=True)
class TargetScale:
    """Mean and standard deviation of each target, and whether y was a table (n, t) or a single column (n,).

    `ranges` are numbers of `RANGES` that predictions stay in. With n exchangeable targets inside, a new one is outside
    with a probability of at most 1/(n + 1) at each end, even where the target has no such limit.
    """

    mean: Array
    std: Array
    is_table: bool
    ranges: Index

    @classmethod
    def of(cls, y: Array, weights: Array | None = None) -> TargetScale:
        """The scale of targets (n,) or (n, t); a constant target keeps its unit."""
        table, h = y.reshape(len(y), -1), np.ones(len(y)) if weights is None else weights
        # The last bit of a sum depends on the order, and SDR makes more of it: the values decide the order.
        order = np.lexsort((h, *table.T[::-1]))
        table, h = table[order], h[order]
        mean = table.mean(axis=0) if (h == 1.0).all() else h @ table / h.sum()
        return cls(mean, spread(table, h), y.ndim == 2, np.zeros(len(mean), dtype=np.intp))

    def standardise(self, y: Array) -> Array:
        """Targets of mean 0 and standard deviation 1: (n,) for one target, (n, t) for several."""
        table = (y.reshape(len(y), -1) - self.mean) / self.std
        return table[:, 0] if table.shape[1] == 1 else table

    def limit(self, y: Array) -> TargetScale:
        """The scale whose predictions stay in the narrowest range that holds these targets."""
        table = y.reshape(len(y), -1)
        least, most = table.min(axis=0), table.max(axis=0)
        return replace(self, ranges=np.where(least < 0, 0, np.where(most > 1, 1, 2)))

    def in_units(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Predictions in the units of y and in its shape."""
        spread = std.reshape(len(std), -1) * self.std
        return self.place(mean.reshape(len(mean), -1)), spread if self.is_table else spread[:, 0]

    def place(self, values: Array) -> Array:
        """Values (n, t) or (n, t, k) of standardised targets in the units, the range and the shape of y."""
        shape = (-1,) + (1,) * (values.ndim - 2)
        mean, std, low, high = (part.reshape(shape) for part in (self.mean, self.std, *RANGES[self.ranges].T))
        found = np.clip(values * std + mean, low, high)
        return np.asarray(found if self.is_table else found[:, 0])


SKEWED, HEAVY = 1.0, 3.0  # skewness and excess kurtosis from which on a warp is tried
KNOTS = 33
OUTER = 4  # targets at each end whose slope goes on beyond them: the last two may be far from each other by chance
LEVELS = (np.arange(40) + 0.5) / 40  # quantiles that the moments in the units of y are averages of


@dataclass(frozen=True)
class Warp:
    """A piecewise-linear, increasing function through `knots` (k, 2), from standardised to nearly Gaussian targets.

    Beyond its ends it goes on with the slope of its first and last piece.
    """

    knots: Array

    def __call__(self, y: Array) -> Array:
        return _interpolate(y, self.knots[:, 0], self.knots[:, 1])

    def back(self, u: Array) -> Array:
        return _interpolate(u, self.knots[:, 1], self.knots[:, 0])

    def log_slope(self, y: Array) -> Array:
        """Logarithm of the derivative, which turns densities of warped targets into those of targets."""
        slopes = np.diff(self.knots[:, 1]) / np.diff(self.knots[:, 0])
        piece = np.clip(np.searchsorted(self.knots[:, 0], y) - 1, 0, len(slopes) - 1)
        return np.asarray(np.log(slopes[piece]))


def _interpolate(x: Array, xs: Array, ys: Array) -> Array:
    slopes = np.diff(ys) / np.diff(xs)
    inner = np.interp(x, xs, ys)
    below, above = np.minimum(x - xs[0], 0.0) * slopes[0], np.maximum(x - xs[-1], 0.0) * slopes[-1]
    return np.asarray(inner + below + above)


def propose_warps(y: Array) -> list[Warp]:
    """Warps worth a try for standardised targets: none if these are not far from Gaussian."""
    if abs(skew(y)) < SKEWED and kurtosis(y) < HEAVY:
        return []
    levels = np.linspace(0.0, 1.0, KNOTS)
    at = np.unique(np.quantile(y, levels))
    if len(at) < 5:  # a few different values: nothing to warp
        return []
    power = _standardise_knots(at, np.asarray(yeojohnson(at, float(yeojohnson_normmax(y)))), y)
    # Normal scores: the share of targets below each knot, ties in the middle.
    below = (np.searchsorted(np.sort(y), at, "left") + np.searchsorted(np.sort(y), at, "right")) / (2 * len(y))
    scores = _standardise_knots(at, ndtri(np.clip(below, 0.5 / len(y), 1 - 0.5 / len(y))), y)
    return [warp for warp in (power, scores) if warp is not None]


def _standardise_knots(at: Array, values: Array, y: Array) -> Warp | None:
    """The warp with mean 0 and variance 1 on the targets; None if it is not increasing."""
    if not np.isfinite(values).all() or (np.diff(values) < 1e-9).any():
        return None
    warped = _interpolate(y, at, values)
    values = (values - warped.mean()) / (warped.std() or 1.0)
    # A knot beyond each end, from which on the warp is a line.
    share, ends, reach = min(0.5, OUTER / len(y)), at[[0, -1]], np.ptp(at) * np.array([-0.5, 0.5])
    inner = np.clip(np.quantile(y, [share, 1.0 - share]), at[1], at[-2])
    slopes = (np.interp(inner, at, values) - values[[0, -1]]) / (inner - ends)
    (first, last), (low, high) = ends + reach, values[[0, -1]] + slopes * reach
    return Warp(np.c_[np.r_[first, at, last], np.r_[low, values, high]])

"""Calibration of predictions: coverage of intervals (regression) and confidence (classification).

The functions that check predictions are here too. Gaussian predictions are y, mean and std of one shape, (n,) or (n, c)
for several targets. Each sample counts by its `sample_weight`, by default once. std is that of an observation, noise
included, and positive: a prediction without spread has no density. Class probabilities are (n, C), with one column per
class.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from distreduce._utils.typing import Array, Index, Mask
from distreduce.estimators._validate import reject_masked
from distreduce.exceptions import InvalidInputError

Weights = ArrayLike | None  # of the samples (n,); None is 1 for each
# Means of float32 posterior samples sum to one within this tolerance.
SUM_TOLERANCE = 1e-4


def interval_coverage(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.9, *, sample_weight: Weights = None
) -> float:
    """Fraction of the observations inside their central interval mean ± Φ⁻¹((1 + level) / 2) · std.

    y, mean and std are those of :func:`regression_scores`; `level` is between 0 and 1. The fraction is about `level` if
    the predictions are calibrated, less if they are over-confident.

    Examples
    --------
    >>> interval_coverage([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])
    0.5
    """
    if not 0 < level < 1:
        raise InvalidInputError(f"level={level} must lie between 0 and 1: 0.9 asks for central 90 % intervals.")
    return float(_observed(read_gaussian(y, mean, std), np.array([level]), "interval", sample_weight)[0])


def calibration_curve(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    n_levels: int = 99,
    kind: Literal["interval", "quantile"] = "interval",
    sample_weight: Weights = None,
) -> tuple[Array, Array]:
    """Expected and observed fractions of observations in central intervals, or below quantiles, of the predictions.

    The levels are a_k = k / (n_levels − 1), k = 0 … n_levels − 1, both ends included, as in uncertainty-toolbox [1]_
    with ``num_bins=n_levels``. The paper's n_bins = 99 thus means steps of 1/98. The default of the toolbox is 100.

    y, mean, std and sample_weight are those of :func:`regression_scores`.

    Parameters
    ----------
    n_levels : int, default=99
        Number of levels, at least 2.
    kind : {"interval", "quantile"}, default="interval"
        "interval" counts mean − z_k std ≤ y ≤ mean + z_k std, z_k = Φ⁻¹((1 + a_k) / 2), as in the paper; "quantile"
        counts y ≤ mean + Φ⁻¹(a_k) std, which also detects a bias of the mean. (The toolbox counts y ≥ mean − Φ⁻¹(a_k)
        std: the same curve rotated by 180° about its centre, with the same calibration error unless y meets a bound.)

    Returns
    -------
    expected : array of shape (n_levels,)
        The levels.
    observed : array of shape (n_levels,)
        The observed fractions. In interval mode, values above `expected` mean under-confidence, below over-confidence.

    References
    ----------
    .. [1] Chung, Char, Guo, Schneider, Neiswanger (2021). Uncertainty Toolbox: an open-source library for assessing,
       visualizing, and improving uncertainty quantification. arXiv:2109.10254.

    Examples
    --------
    >>> expected, observed = calibration_curve([-1.0, 0.5, 2.0], [0, 0, 0], [1, 1, 1], n_levels=3)
    >>> expected.tolist(), observed.round(2).tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.33, 1.0])
    """
    _check_count("n_levels", n_levels, 2, ": the levels 0 and 1 are among them")
    if kind not in ("interval", "quantile"):
        raise InvalidInputError(f"kind={kind!r} must be 'interval' or 'quantile'.")
    expected = np.linspace(0, 1, n_levels)
    return expected, _observed(read_gaussian(y, mean, std), expected, kind, sample_weight)


def mean_absolute_calibration_error(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    n_levels: int = 99,
    kind: Literal["interval", "quantile"] = "interval",
    sample_weight: Weights = None,
) -> float:
    """``MACE = (1/K) Σ_k |a_k − observed_k|`` over the K = ``n_levels`` levels of :func:`calibration_curve` [1]_.

    Equal to ``uncertainty_toolbox.mean_absolute_calibration_error(mean, std, y, num_bins=n_levels)``. The ends a = 0
    and a = 1 count in the mean, though their own error is zero (at 0 unless a mean is hit exactly). Parameters are
    those of :func:`calibration_curve`; the error is between 0 (calibrated) and about 0.5.

    References
    ----------
    .. [1] Kuleshov, Fenner, Ermon (2018). Accurate uncertainties for deep learning using calibrated regression. ICML.

    Examples
    --------
    >>> round(mean_absolute_calibration_error([5.0, -5.0], [0.0, 0.0], [1.0, 1.0]), 3)  # far too confident
    0.49
    """
    expected, observed = calibration_curve(y, mean, std, n_levels=n_levels, kind=kind, sample_weight=sample_weight)
    return float(np.abs(expected - observed).mean())


def expected_calibration_error(
    y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike, *, n_bins: int = 15, sample_weight: Weights = None
) -> float:
    """``ECE = Σ_b |B_b|/n · |accuracy(B_b) − confidence(B_b)|`` of the most probable class [1]_.

    B_b contains the samples whose confidence, the largest probability of their row, is in (b/n_bins, (b + 1)/n_bins].
    Among equal probabilities the first class is the predicted one. y, probabilities and classes are those of
    :func:`classification_scores`; the error is between 0 (calibrated) and 1.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger (2017). On calibration of modern neural networks. ICML.

    Examples
    --------
    >>> round(expected_calibration_error(["a", "a"], [[0.9, 0.1], [0.2, 0.8]], ["a", "b"]), 3)
    0.45
    """
    _check_count("n_bins", n_bins, 1)
    codes, rows = read_probabilities(y, probabilities, classes)
    h = read_weights(sample_weight, len(codes))
    return _calibration_error(rows.max(axis=1), rows.argmax(axis=1) == codes, h, n_bins)


def calibration_error_by_chance(probabilities: Array, sample_weight: Weights = None, n_draws: int = 200) -> float:
    """Mean of :func:`expected_calibration_error` if the probabilities were exactly right: few samples alone have some.

    The mean is over `n_draws` sets of answers, drawn with a fixed seed: a sample is correct with its own confidence.
    """
    confidence, h = probabilities.max(axis=1), read_weights(sample_weight, len(probabilities))
    rng = np.random.default_rng(0)
    drawn = (rng.random(len(confidence)) < confidence for _ in range(n_draws))
    return float(np.mean([_calibration_error(confidence, correct, h) for correct in drawn]))


def _calibration_error(confidence: Array, correct: Mask, h: Array, n_bins: int = 15) -> float:
    # "left" puts a confidence on a border into the lower bin, because bins are closed on the right.
    bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], confidence, side="left")
    # |B_b|/n · |mean(correct) − mean(confidence)| needs only the sum of the differences; empty bins add zero.
    return float(np.abs(np.bincount(bins, weights=h * (correct - confidence))).sum() / h.sum())


def read_weights(sample_weight: Weights, size: int) -> Array:
    """Weights of `size` numbers, those of a sample together; raise InvalidInputError if there are others."""
    if sample_weight is None:
        return np.ones(size)
    h = read_numbers("sample_weight", sample_weight)
    if h.ndim != 1 or len(h) == 0 or size % len(h) or h.min() < 0 or not h.sum() > 0:
        seen = f"got the shape {h.shape}" + (f", and the least is {h.min():g}." if h.size else ".")
        raise InvalidInputError(f"sample_weight must be one number ≥ 0 for each sample, and not all 0; {seen}")
    return np.repeat(h, size // len(h))


def average(values: Array, sample_weight: Weights) -> float:
    """Mean of the numbers, in which a sample counts by its weight."""
    if sample_weight is None:
        return float(values.mean())
    h = read_weights(sample_weight, len(values))
    counts = h > 0  # an infinite score of a sample without weight must not become NaN
    return float(np.average(values[counts], weights=h[counts]))


def share_below(ordered: Array, h: Array, at: Any, side: Literal["left", "right"]) -> Array:
    """Share of the weights h of sorted values that lie below (side "left"), or up to ("right"), each of the numbers."""
    counts = np.r_[0.0, np.cumsum(h)]
    return np.asarray(counts[np.searchsorted(ordered, at, side=side)] / counts[-1])


def read_residuals(y: ArrayLike, mean: ArrayLike) -> Array:
    """Flat residuals y − mean; raise InvalidInputError if the shapes differ."""
    # NumPy would broadcast (n,) against (n, 1) to n × n residuals: shapes must be equal.
    observed, predicted = read_numbers("y", y), read_numbers("mean", mean)
    if observed.shape != predicted.shape or observed.ndim not in (1, 2) or observed.size == 0:
        raise InvalidInputError(
            f"y and mean must have one shape, (n,) or (n, c) with n ≥ 1; got {observed.shape} and {predicted.shape}."
        )
    with np.errstate(over="ignore"):  # an infinite score is as informative as an error
        return (observed - predicted).ravel()


def read_gaussian(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> tuple[Array, Array]:
    """Flat residuals y − mean and standard deviations; raise InvalidInputError if they are not valid."""
    residuals, spread = read_residuals(y, mean), read_numbers("std", std)
    if spread.shape != np.shape(mean):
        expected = f"std must have the shape of y and mean, {np.shape(mean)}"
        raise InvalidInputError(f"{expected}; got {spread.shape}. Give each its own.")
    if not (spread > 0).all():
        raise InvalidInputError(
            f"std must be above 0; its smallest value is {spread.min():g}. A prediction without spread has no density: "
            "add the standard deviation of the noise."
        )
    return residuals, spread.ravel()


def read_probabilities(y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike) -> tuple[Index, Array]:
    """Column (n,) of each true class, and the probabilities (n, C); raise InvalidInputError if they are not valid."""
    reject_masked(y, "y")
    rows, labels, names = read_numbers("probabilities", probabilities), np.asarray(y), np.asarray(classes)
    if labels.ndim != 1 or names.ndim != 1 or rows.shape != (len(labels), len(names)) or rows.size == 0:
        raise InvalidInputError(
            "y (n,), probabilities (n, C) and classes (C,) must agree in n ≥ 1 and C ≥ 1; "
            f"got shapes {labels.shape}, {rows.shape} and {names.shape}."
        )
    if rows.min() < 0 or np.abs(rows.sum(axis=1) - 1).max() > SUM_TOLERANCE:
        # Name the row that is furthest from a distribution.
        off = np.argmax(np.maximum(-rows.min(axis=1), np.abs(rows.sum(axis=1) - 1)))
        raise InvalidInputError(
            f"probabilities must be at least 0 and sum to 1 in each row; row {off} is {rows[off]}. "
            "Scores or logits need a softmax first."
        )
    return _columns(labels, names), rows


def _columns(labels: NDArray[Any], names: NDArray[Any]) -> Index:
    index = pd.Index(names)
    if not index.is_unique:
        raise InvalidInputError(
            f"classes holds {names[index.duplicated()].tolist()[0]!r} twice; give each column its own class."
        )
    # A lookup by hash: classes may have any order and any type.
    columns = index.get_indexer(pd.Index(labels))
    if (columns < 0).any():
        stranger = labels[columns < 0].tolist()[0]
        raise InvalidInputError(f"y holds the label {stranger!r}, which is not among the classes {names}.")
    return np.asarray(columns, dtype=np.intp)


def read_numbers(name: str, given: ArrayLike) -> Array:
    """Finite numbers of any shape; raise InvalidInputError, with their `name`, for anything else."""
    reject_masked(given, name)
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be an array of numbers ({error}).") from error
    if not np.isfinite(values).all():
        raise InvalidInputError(f"{name} holds NaN or infinity; leave these predictions out or correct them.")
    return values


def _observed(gaussian: tuple[Array, Array], levels: Array, kind: str, sample_weight: Weights) -> Array:
    """Share of observations in the interval, or below the quantile, of each level, by bisection of sorted residuals.

    Sorting needs O(n) memory; comparing all observations with all levels would need O(n · levels).
    """
    residuals, std = gaussian
    with np.errstate(over="ignore"):
        # mean − y, and each bound from its own tail, which rounds at a boundary as uncertainty-toolbox does.
        u = -residuals / std
    order = np.argsort(u, kind="stable")
    below = partial(share_below, u[order], read_weights(sample_weight, len(u))[order])
    if kind == "interval":
        # Both ends of an interval belong to it: count up to its upper end, less all below its lower end.
        return below(ndtri(0.5 + levels / 2), side="right") - below(ndtri(0.5 - levels / 2), side="left")
    return 1 - below(-ndtri(levels), side="left")


def _check_count(name: str, value: Any, least: int, why: str = "") -> None:
    # To Python, True is the integer 1.
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidInputError(f"{name}={value!r} must be an integer of at least {least}{why}.")

r"""How sure a held-out score is: intervals by the jackknife over independent units, which are rows or whole groups.

A score is a function :math:`\theta` of sums over the rows. With the sums that remain without unit u of G,

.. math:: s^2 = \frac{G-1}{G} \sum_u (\theta_{-u} - \bar\theta)^2, \qquad \theta \pm t_{G-1}\, s .

The interval is for this model on new rows of the same law: another training set is not part of it. Errors of heavy
tails make it too short, because the rare large ones are not among few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from distreduce._utils.typing import Array
from distreduce.metrics.calibration import Weights, read_weights

LEVEL = 0.95
Interval = tuple[float, float]


def r2_interval(
    y: ArrayLike, mean: ArrayLike, sample_weight: Weights = None, groups: ArrayLike | None = None
) -> Interval:
    """Return the 95 % interval of R², the mean over the targets."""
    truth = np.asarray(y, dtype=np.float64).reshape(len(np.asarray(y)), -1)
    missed = truth - np.asarray(mean, dtype=np.float64).reshape(truth.shape)
    center = truth.mean(axis=0)
    unit = np.abs(truth - center).max(axis=0)  # squares of large numbers overflow
    truth, missed = (part / np.where(unit > 0, unit, 1.0) for part in (truth - center, missed))

    def unexplained(sums: Array) -> Array:
        n, first, second, errors = sums[..., :1], *np.split(sums[..., 1:], 3, axis=-1)
        return np.asarray((errors / (second - first**2 / n)).mean(axis=-1))

    return _explained(
        np.hstack([np.ones((len(truth), 1)), truth, truth**2, missed**2]), unexplained, sample_weight, groups
    )


def gain_interval(
    ours: Array, theirs: Array, sample_weight: Weights = None, groups: ArrayLike | None = None
) -> Interval:
    """Return the 95 % interval of the share of their errors (n,) that ours (n,) avoid."""
    return _explained(np.stack([ours, theirs], axis=1), lambda sums: sums[..., 0] / sums[..., 1], sample_weight, groups)


def accuracy_interval(right: ArrayLike, sample_weight: Weights = None, groups: ArrayLike | None = None) -> Interval:
    """Return Wilson's 95 % interval of an accuracy, for as many independent rows as have its standard error."""
    hits = np.asarray(right, dtype=np.float64)
    h = read_weights(sample_weight, len(hits))
    sums = _sum_units(np.stack([np.ones(len(hits)), hits], axis=1), h, groups)
    p, error, t = _jackknife(sums, lambda each: each[..., 1] / each[..., 0])
    # Without any scatter, all rows right or all wrong, units are what can be counted.
    n, units = (float(w.sum() ** 2 / (w**2).sum()) for w in (h, sums[:, 0]))
    n = min(n, p * (1 - p) / error**2) if error > 0 else units
    if not np.isfinite(t):
        return 0.0, 1.0
    low, high = wilson_interval(p, n, t)
    return float(low), float(high)


def wilson_interval(p: Any, n: Any, z: float = 1.96) -> tuple[Any, Any]:
    r"""Return the ends of the interval of a share p of n samples (Wilson's, which holds for few of them).

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}
    """
    middle, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)


def _explained(
    rows: Array, unexplained: Callable[[Array], Array], sample_weight: Weights, groups: ArrayLike | None
) -> Interval:
    r"""Return :math:`1 - r e^{\pm t s / r}` for the unexplained share r: errors in it are relative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        r, error, t = _jackknife(_sum_units(rows, sample_weight, groups), unexplained)
        if r == 0:  # no error at all
            return 1.0, 1.0
        factor = np.exp(t * error / r)
    return (float(1 - r * factor), float(1 - r / factor)) if np.isfinite(factor) else (-np.inf, 1.0)


def _sum_units(rows: Array, sample_weight: Weights, groups: ArrayLike | None) -> Array:
    """Return the weighted sums over the rows of each unit; rows of weight zero are none."""
    h, unit = read_weights(sample_weight, len(rows)), np.arange(len(rows)) if groups is None else np.asarray(groups)
    used = h > 0
    found, codes = np.unique(unit[used], return_inverse=True)
    sums = np.zeros((len(found), rows.shape[1]))
    np.add.at(sums, codes.ravel(), h[used, None] * rows[used])
    return sums


def _jackknife(sums: Array, score: Callable[[Array], Array]) -> tuple[float, float, float]:
    """Return the score, its standard error, and the quantile of Student's t; a single unit has an infinite one."""
    total, n = sums.sum(axis=0), len(sums)
    if n < 2:
        return float(score(total)), 0.0, np.inf
    without = score(total - sums)
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return float(score(total)), float(error), float(stdtrit(n - 1, 0.5 + LEVEL / 2))

r"""Scores of held-out predictions, whose quantiles need not be Gaussian, and how sure these scores are.

Intervals are those of the jackknife over independent units, which are rows or whole groups. A score is a function
:math:`\theta` of sums over the rows. With the sums that remain without unit u of G,

.. math:: s^2 = \frac{G-1}{G} \sum_u (\theta_{-u} - \bar\theta)^2, \qquad \theta \pm t_{G-1}\, s .

The interval is for this model on new rows of the same distribution: another training set is not part of it. With
heavy-tailed errors it is too short, because few rows rarely include the large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
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


def _gaussian(y: Array, mean: Array, std: ArrayLike, scale: ArrayLike | None, weights: Weights) -> dict[str, float]:
    read_gaussian(y, mean, std)  # checks shapes before the division broadcasts
    unit = read_numbers("scale", 1.0 if scale is None else scale)
    if unit.shape not in ((), y.shape[1:]) or not (unit > 0).all():
        raise InvalidInputError(f"scale must be a number above 0, or one for each target; got {unit.tolist()!s:.80}.")
    return regression_scores(y / unit, mean / unit, np.asarray(std, dtype=np.float64) / unit, weights)


def _levels(levels: ArrayLike, y: Array) -> Array:
    found = read_numbers("levels", levels)
    if found.shape != y.shape or found.min() < 0 or found.max() > 1:
        raise InvalidInputError(f"levels must be numbers from 0 to 1 in the shape of y, {y.shape}; got {found.shape}.")
    return found


LEVEL = 0.95
Interval = tuple[float, float]
Groups = ArrayLike | None  # of the rows (n,); None is each row by itself


def r2_interval(y: ArrayLike, mean: ArrayLike, sample_weight: Weights = None, groups: Groups = None) -> Interval:
    """Return the 95 % interval of R², the mean over the targets."""
    truth = np.asarray(y, dtype=np.float64).reshape(len(np.asarray(y)), -1)
    missed = truth - np.asarray(mean, dtype=np.float64).reshape(truth.shape)
    center = truth.mean(axis=0)
    unit = np.abs(truth - center).max(axis=0)  # squares of large numbers overflow
    truth, missed = (part / np.where(unit > 0, unit, 1.0) for part in (truth - center, missed))

    def unexplained(sums: Array) -> Array:
        n, first, second, errors = sums[..., :1], *np.split(sums[..., 1:], 3, axis=-1)
        return np.asarray((errors / (second - first**2 / n)).mean(axis=-1))

    rows = np.hstack([np.ones((len(truth), 1)), truth, truth**2, missed**2])
    return _explained(rows, unexplained, sample_weight, groups)


def gain_interval(ours: Array, theirs: Array, sample_weight: Weights = None, groups: Groups = None) -> Interval:
    """Return the 95 % interval of the share of their errors (n,) that ours (n,) avoid."""
    return _explained(np.stack([ours, theirs], axis=1), lambda sums: sums[..., 0] / sums[..., 1], sample_weight, groups)


def accuracy_interval(right: ArrayLike, sample_weight: Weights = None, groups: Groups = None) -> Interval:
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


def _explained(rows: Array, unexplained: Callable[[Array], Array], sample_weight: Weights, groups: Groups) -> Interval:
    r"""Return :math:`1 - r e^{\pm t s / r}` for the unexplained share r: errors in it are relative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        r, error, t = _jackknife(_sum_units(rows, sample_weight, groups), unexplained)
        if r == 0:  # no error at all
            return 1.0, 1.0
        factor = np.exp(t * error / r)
    return (float(1 - r * factor), float(1 - r / factor)) if np.isfinite(factor) else (-np.inf, 1.0)


def _sum_units(rows: Array, sample_weight: Weights, groups: Groups) -> Array:
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

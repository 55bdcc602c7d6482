"""The scores of held-out numbers that a fit reports on the screen, in its file and on its page."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import r2_score

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.metrics.calibration import read_gaussian, read_numbers
from distreduce.metrics.intervals import level_scores
from distreduce.metrics.prediction import mean_squared_error, regression_scores

LARGE = 1e100


def held_out_scores(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    levels: ArrayLike | None = None,
) -> dict[str, float]:
    """``r2`` (mean over targets), ``rmse`` (of a single target, in its units) and, with std, the `regression_scores`.

    `scale` (c,) is the unit of each target in all scores except ``rmse``, such as its standard deviation in the
    training rows. With `levels`, which :func:`~distreduce.metrics.intervals.interval_levels` finds, ``mace`` and
    ``coverage_90`` are those of the model's own intervals instead of Gaussian ones.
    """
    truth, said = read_numbers("y", y), read_numbers("mean", mean)
    # Squares of very large targets would overflow.
    size = float(np.abs(truth).max(initial=0.0))
    unit = size if size > LARGE else 1.0
    error = mean_squared_error(truth / unit, said / unit)  # raises if the two cannot be compared
    scores = {} if std is None else _gaussian(truth, said, std, scale)
    if levels is not None:
        scores |= level_scores(_levels(levels, truth))  # replace the Gaussian mace and coverage_90
    r2 = float(r2_score(truth / unit, said / unit)) if len(truth) > 1 else float("nan")  # undefined for one sample
    # Targets of different units have no common error.
    rmse = {"rmse": float(unit * np.sqrt(error))} if truth.size == len(truth) else {}
    return {"r2": r2, **rmse, **scores}


def _gaussian(y: Array, mean: Array, std: ArrayLike, scale: ArrayLike | None) -> dict[str, float]:
    read_gaussian(y, mean, std)  # checks shapes before the division broadcasts
    unit = read_numbers("scale", 1.0 if scale is None else scale)
    if unit.shape not in ((), y.shape[1:]) or not (unit > 0).all():
        raise InvalidInputError(f"scale must be a number above 0, or one for each target; got {unit.tolist()!s:.80}.")
    return regression_scores(y / unit, mean / unit, np.asarray(std, dtype=np.float64) / unit)


def _levels(levels: ArrayLike, y: Array) -> Array:
    found = read_numbers("levels", levels)
    if found.shape != y.shape or found.min() < 0 or found.max() > 1:
        raise InvalidInputError(f"levels must be numbers from 0 to 1 in the shape of y, {y.shape}; got {found.shape}.")
    return found

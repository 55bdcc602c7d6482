"""What the coupling sees of the targets: those that are expected from the other samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from distreduce._utils.typing import Array, Index
from distreduce.estimators._auto import MapChoice, draw_known, fit_predictor, predict_left_out, scale_features
from distreduce.losses import keep_in_range, supervised_rows
from distreduce.mapping import KernelMap
from distreduce.mapping.folds import Folds
from distreduce.sharding.sample import Sample

PREDICTION_SAMPLES = 2000  # of a regression; to learn its length scales costs more, and takes fewer


@dataclass(frozen=True)
class TargetRegression:
    """Kernel ridge regression of the targets on drawn samples, and what it predicts for each sample as if it were new.

    `left_out` (n, c) has what the other folds predict for those that were drawn, and what all drawn ones predict for
    the others.
    """

    choice: MapChoice
    drawn: Sample
    targets: Array  # of those that were drawn
    rows: Index  # their numbers
    left_out: Array

    @cached_property
    def predictor(self) -> tuple[Array, Array]:
        """Coefficients and mean of the regression on all drawn samples."""
        return fit_predictor(self.choice, self.drawn, self.targets)

    def predict(self, features: Any) -> Array:
        """Return the targets of new samples, whose features are distances to those that were drawn if they must be."""
        choice, (coefficients, mean) = self.choice, self.predictor
        inputs = None if self.drawn.precomputed else scale_features(self.drawn.features, choice.scales)
        unit = 1.0 if choice.scales is None else choice.scales
        return np.asarray(mean + KernelMap(choice.kernel, inputs, coefficients, unit)(features))


def regress_targets(
    choice: MapChoice, sample: Sample, folds: Folds, size: int = PREDICTION_SAMPLES
) -> TargetRegression:
    """Fit the regression to at most `size` samples with known targets."""
    Y = sample.targets
    assert Y is not None
    drawn, rows = draw_known(sample, Y, size)
    folds, others = folds.take(rows), np.setdiff1d(np.arange(len(Y)), rows)
    found = TargetRegression(choice, drawn, Y[rows], rows, np.empty(Y.shape))
    found.left_out[rows] = folds.average(predict_left_out(choice, drawn, Y[rows], folds))
    if len(others):
        part = sample.features[np.ix_(others, rows)] if sample.precomputed else sample.features[others]
        found.left_out[others] = found.predict(part)
    return found


def regress_without_folds(choice: MapChoice, sample: Sample, folds: Folds) -> dict[int, TargetRegression]:
    """Return, for every fold, the regression on the other samples: that of all knows the targets of the fold.

    None at all if too few folds have known targets.
    """
    assert sample.targets is not None
    found: dict[int, TargetRegression] = {}
    if len(folds.take(np.flatnonzero(supervised_rows(sample.targets))).numbers) < 3:
        return found
    for fold in folds.numbers:
        rest, h = folds.rest(fold)
        metric = replace(choice, scales=choice.scales_without(fold), fold_scales=None)
        others = replace(sample.take(rest), weights=h)
        found[fold] = regress_targets(metric, others, folds.without(fold), PREDICTION_SAMPLES // 2)
    return found


def expected_targets(regression: TargetRegression, Y: Array, *, shares: bool) -> Array:
    """Return what the samples of other folds predict for the targets Y of each sample; NaN where they are unknown.

    The coupling sees these instead of the targets: a prototype then stands for samples that are alike in what matters
    to y, not for samples whose noise is alike. (On shards:
    :meth:`distreduce.mapping.landmarks.LandmarkRegression.expect`.)
    """
    expected = np.where(supervised_rows(Y)[:, None], regression.left_out, np.nan)
    return keep_in_range(expected, Y, shares=shares)


def expected_without_folds(
    regressions: Mapping[int, TargetRegression], Y: Array, folds: Folds, *, shares: bool
) -> dict[int, Array]:
    """Return, for every fold, the expected targets of the other samples, computed without that fold.

    Those of :func:`expected_targets` know the fold: to place it among them would give its targets away.
    """
    found = {}
    for fold, regression in regressions.items():
        rest, _ = folds.rest(fold)
        found[fold] = np.full(Y.shape, np.nan)
        found[fold][rest] = expected_targets(regression, Y[rest], shares=shares)
    return found

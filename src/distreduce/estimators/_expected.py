"""What the other samples say about the targets of each, for the coupling and as further features of the map.

The coupling sees expected targets. A map from x to the places of prototypes puts a sample that could belong to either
of two of them midway between, where a third may lie: with predicted shares of classes among its features it can follow
what is predicted instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index
from distreduce.estimators._auto import (
    CHOICE_SAMPLES,
    MapChoice,
    choose,
    choose_map,
    draw_known,
    fit_predictor,
    predict_left_out,
    scale_features,
)
from distreduce.kernels import RBF, Kernel
from distreduce.losses import keep_in_range, supervised_rows
from distreduce.mapping import KernelMap, Predictions
from distreduce.mapping.folds import Folds, fold_samples
from distreduce.mapping.landmarks import LandmarkRegression, spread_landmarks
from distreduce.sharding.merge import Arrangement
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.sharding.shards import Shards, Slice, local_shards

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


REACHES = (0.25, 0.5, 1.0)  # length scales of predicted shares, in units of their spread
WIDER = (1.0, 2.0, 4.0)  # length scales of the features beside them, in units of the one chosen for the features alone
# On shards many samples teach the shares, which have most say: to choose by left-out samples gained on one of six sets.
MOST_WIDE, REACH, RIDGE = 4.0, 0.5, 1.0
# The regression behind the shares there: landmarks, and length scales in units of the one chosen for x alone.
LANDMARKS, NARROWER, TRIAL_SAMPLES = (500, 1000, 2000), (1.0, 0.5, 0.25), 10_000
SHARPNESS = (-3.0, 6.0)  # logarithms of the least and the greatest


def choose_with_predictions(estimator: Any, sample: Sample, folds: Folds, unit: float, workers: Workers) -> MapChoice:
    r"""Choose kernel, metric and ridge; predicted shares p(x) of classes join the features if left-out samples gain.

    .. math:: k(x, x') = \exp\Big(-\frac{|x - x'|^2}{2 f^2 l^2} - \frac{|p(x) - p(x')|^2}{2 g^2 r^2}\Big)

    Metric and length scale l are those chosen for x alone, and r² is the mean variance of the shares. Training samples
    have those that the other folds predict, which look like those of new samples. With the smallest f x has most say,
    which spreads the prototypes of a class. But in many dimensions samples far from each other in x would learn
    nothing from equal predictions, so a larger f is taken where left-out samples are clearly better off.
    """
    alone = choose(estimator, sample, folds, unit, workers)
    if not _can_predict(estimator, alone, sample):
        return alone
    assert sample.kernel_targets is not None and isinstance(alone.kernel, RBF)
    drawn, rows = draw_known(sample, sample.kernel_targets, CHOICE_SAMPLES)
    Y, length = sample.kernel_targets[rows], np.max(alone.kernel.length_scale)  # one for all features
    regression = regress_targets(alone, sample, folds)  # for classes, both kinds of targets are the same
    predictions = _predictions(regression, unit)
    c, d, size = predictions.shares.shape[1], sample.features.shape[1], _spread(predictions.shares, sample.weights)

    def lengths(scales: Array | None, wider: float, reach: float) -> Array:
        return np.r_[wider * length * (np.ones(d) if scales is None else scales), np.full(c, reach * size)]

    # Every f with the best of the g.
    wide, parts = replace(drawn, features=np.hstack([drawn.features, predictions.shares[rows]])), folds.take(rows)
    tried: list[tuple[MapChoice, float, float]] = []
    for wider in WIDER:
        reaches: dict[Kernel, float] = {RBF(lengths(alone.scales, wider, reach)): reach for reach in REACHES}
        found = choose_map(wide, Y, parts, [(kernel, None) for kernel in reaches], workers=workers)
        tried.append((found, wider, reaches[found.kernel]))
    best = min((found for found, _, _ in tried), key=lambda found: found.error)
    # The smallest that is not clearly worse than the best.
    found, wider, reach = next(one for one in tried if not _is_clearly_less(best.misses, one[0].misses, parts.weights))
    if not _is_clearly_less(found.misses, alone.misses, parts.weights):
        return alone
    # The length scales become scales of the features, as those of a learned metric are.
    fold_scales = alone.fold_scales
    if fold_scales is not None:
        fold_scales = [lengths(scales, wider, reach) for scales in fold_scales]
    scales = lengths(alone.scales, wider, reach)
    found = replace(found, kernel=RBF(1.0), scales=scales, fold_scales=fold_scales, predictions=predictions)
    return replace(found, alone=alone, regression=regression)


def _can_predict(estimator: Any, choice: MapChoice, sample: Sample) -> bool:
    """Return whether all of the map is left to the data, which are features in memory that tell about the targets."""
    given = (estimator.length_scale, estimator.map_reg, estimator.eta, estimator.input_kernel)
    automatic = all(isinstance(value, str) for value in given) and given == ("auto", "auto", "auto", "rbf")
    dense = not (sample.precomputed or sparse.issparse(sample.features))
    if not (automatic and dense and choice.has_signal) or np.isnan(choice.error) or sample.kernel_targets is None:
        return False
    # In as many dimensions as the predictions have, the map of the features alone can follow them.
    Y = sample.kernel_targets[draw_known(sample, sample.kernel_targets, CHOICE_SAMPLES)[1]]
    return bool(np.linalg.matrix_rank(Y - Y.mean(axis=0)) > estimator.n_components)


ByFold = dict[int, Array]


def targets_without_folds(
    choice: MapChoice, sample: Sample, folds: Folds, unit: float, *, shares: bool, coupled: bool
) -> tuple[ByFold | None, ByFold | None]:
    """Return, for every fold, expected targets (if `coupled`) and predictions, if there are any, without the fold.

    Those of the fit know the targets of a fold: to place the fold among them would give its targets away. Expected are
    the targets of the other samples; predictions (n, c) are of all.
    """
    Y, n = sample.targets, len(sample.weights)
    assert Y is not None
    expected, predicted = {}, {}
    for fold, regression in regress_without_folds(choice.metric, sample, folds).items():
        rest, _ = folds.rest(fold)
        if coupled:
            expected[fold] = np.full(Y.shape, np.nan)
            expected[fold][rest] = expected_targets(regression, Y[rest], shares=shares)
        if choice.predictions is not None:
            out, known = np.setdiff1d(np.arange(n), rest), _predictions(regression, unit)
            predicted[fold] = np.empty((n, known.shares.shape[1]))
            predicted[fold][rest], predicted[fold][out] = known.shares, known(sample.features[out] * unit)
    return expected or None, predicted or None


def _predictions(regression: TargetRegression, unit: float) -> Predictions:
    r"""Return the shares of classes, :math:`p = \mathrm{softmax}(s (\hat y - \bar y))`, that regression predicts.

    Squared errors shrink ŷ where a class is hard to predict, though its largest entry is often right. The sharpness s
    makes left-out classes most probable. Without the mean of y, classes count as if they were equally frequent: rare
    ones keep a place of their own in the picture, and p is not the probability of the class. Where the regression has
    seen the class of a sample, ŷ is cross-fitted.
    """
    choice, drawn, (coefficients, mean) = regression.choice, regression.drawn, regression.predictor
    kernel, scores = choice.kernel, regression.left_out - mean
    assert isinstance(kernel, RBF)
    if choice.scales is not None:
        kernel = RBF(kernel.length_scale * choice.scales)
    sharpness = _sharpen(scores[regression.rows], regression.targets, drawn.weights)
    shares = softmax(sharpness * scores, axis=1)
    return Predictions(shares, KernelMap(kernel, drawn.features, sharpness * coefficients, unit))


@dataclass(frozen=True)
class LandmarkScores:
    """What a regression on landmarks says about the classes of samples on shards, and which of them it misses."""

    length: float
    landmarks: Array
    coefficients: Array
    scores: Array  # (n, c), as deviations from the mean of Y, what the others say about each sample
    misses: Array  # (n,), 1 where another class than the sample's own has the highest score


def predict_on_shards(
    estimator: Any,
    alone: MapChoice,
    known: Sample,
    sample: ShardedSample,
    folds: Folds | None,
    arrangement: Arrangement,
    unit: float,
    workers: Workers,
) -> tuple[MapChoice, ShardedSample]:
    """As :func:`choose_with_predictions`, from the choice for the features of a `known` part of the samples alone.

    A regression on landmarks of all samples gives each the shares that the others predict for it. The folds, if some
    samples have equal features, are those of all.
    """
    if not _can_predict(estimator, alone, known):
        return alone, sample
    subsample, h, length = sample.subsample, sample.weights, _one_length(alone)
    Y = np.concatenate(sample.shards.collect_part("kernel_targets")).astype(np.float64)
    found = _score_classes(sample, Y, folds, arrangement, alone, workers)
    given = supervised_rows(Y)
    sharpness = _sharpen(found.scores[given], Y[given], h[given])
    shares = softmax(sharpness * found.scores, axis=1)
    wide, drawn = MOST_WIDE * length, arrangement.random_order[: len(subsample.weights)]
    metric = np.ones(known.features.shape[1]) if alone.scales is None else alone.scales
    # One length scale for all features, so that near landmarks are near in the kernel.
    scales = np.r_[metric, np.full(shares.shape[1], REACH * _spread(shares, h) / wide)]
    predictor = KernelMap(RBF(found.length * metric), found.landmarks * metric, sharpness * found.coefficients, unit)
    predictions = Predictions(shares[drawn[:CHOICE_SAMPLES]], predictor)
    choice = replace(alone, kernel=RBF(wide), ridge=RIDGE, scales=scales, predictions=predictions, alone=alone)
    shares /= scales[-1]
    sample.shards.keep("shares", Slice(shares))
    return choice, replace(sample, subsample=replace(subsample, shares=shares[drawn]))


def _score_classes(
    sample: ShardedSample, Y: Array, folds: Folds | None, arrangement: Arrangement, alone: MapChoice, workers: Workers
) -> LandmarkScores:
    """Return the scores of the regression that is wrong about fewest left-out classes of some samples.

    Metric and ridge come from few samples. Where many are near each other, narrower kernels predict better. There are
    more landmarks while the samples are clearly better off.
    """
    X, shards, h, targets, parts = sample.subsample.features, sample.shards, sample.weights, Y, folds
    length, ridge = _one_length(alone), alone.ridge
    drawn = np.flatnonzero(supervised_rows(np.asarray(sample.subsample.kernel_targets)))[:TRIAL_SAMPLES]
    if len(h) > TRIAL_SAMPLES and len(drawn) >= CHOICE_SAMPLES:
        few = sample.subsample.take(drawn)
        shards = local_shards({"features": few.features, "shares": None}, workers)
        h, targets = few.weights, np.asarray(few.kernel_targets)
        if folds is not None:
            counts = arrangement.merged.counts[arrangement.random_order[drawn]]
            parts = fold_samples(few.features, h, targets, counts)
    tried = [_regress_on_landmarks(shards, h, targets, parts, X, f * length, LANDMARKS[0], ridge) for f in NARROWER]
    best = min(tried, key=lambda one: h @ one.misses)
    for r in LANDMARKS[1:]:
        more = _regress_on_landmarks(shards, h, targets, parts, X, best.length, r, ridge)
        if not _is_clearly_less(more.misses, best.misses, h):
            break
        best = more
    if shards is sample.shards:
        return best
    return _regress_on_landmarks(sample.shards, sample.weights, Y, folds, X, best.length, len(best.landmarks), ridge)


def _one_length(choice: MapChoice) -> float:
    assert isinstance(choice.kernel, RBF)
    return float(np.max(choice.kernel.length_scale))


def _regress_on_landmarks(
    shards: Shards, h: Array, Y: Array, folds: Folds | None, rows: Array, length: float, r: int, ridge: float
) -> LandmarkScores:
    """Regress Y, where it is known, on r landmarks for the features; `rows` of these are in random order."""
    given, landmarks = supervised_rows(Y), spread_landmarks(rows, r)
    mean, weights = h[given] @ Y[given] / h[given].sum(), np.where(given, h, 0.0)
    # The samples on the shards are divided by the scales of the metric.
    regression = LandmarkRegression(shards, landmarks, RBF(length), weights, 1.0, ridge, residual=False)
    scores, coefficients = regression.cross_fit(np.where(given[:, None], Y - mean, 0.0), folds)
    misses = given & (scores.argmax(axis=1) != np.nan_to_num(Y).argmax(axis=1))
    return LandmarkScores(length, landmarks, coefficients, scores, misses.astype(np.float64))


def _sharpen(scores: Array, Y: Array, weights: Array) -> float:
    """Return the factor of the scores (n, c) under which the classes Y are most probable."""

    def loss(logarithm: float) -> float:
        return -float(weights @ (Y * log_softmax(np.exp(logarithm) * scores, axis=1)).sum(axis=1))

    return float(np.exp(minimize_scalar(loss, bounds=SHARPNESS, method="bounded").x))


def _spread(shares: Array, weights: Array) -> float:
    """Return the root of the mean squared distance of the shares from their mean."""
    mean = weights @ shares / weights.sum()
    return float(np.sqrt(weights @ ((shares - mean) ** 2).sum(axis=1) / weights.sum())) or 1.0


def _is_clearly_less(one: Array | None, other: Array | None, weights: Array) -> bool:
    """Return whether the mean of one is below that of the other by two standard errors of the difference."""
    assert one is not None and other is not None
    less = other - one
    mean = weights @ less / weights.sum()
    return bool(mean > 2.0 * np.sqrt(weights @ (less - mean) ** 2) / weights.sum())

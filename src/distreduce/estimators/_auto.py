"""What "auto" stands for: metric, kernel and ridge of the map, and what the coupling sees of the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from distreduce._utils.numerics import divide_columns
from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, DistanceKernel, Kernel, RationalQuadratic
from distreduce.losses import supervised_rows
from distreduce.mapping.choice import (
    RIDGES,
    Candidate,
    MapChoice,
    TaughtSamples,
    choose_map,
    fit_predictor,
    predict_left_out,
)
from distreduce.mapping.kernel_map import KernelMap
from distreduce.mapping.left_out import keep_in_range
from distreduce.mapping.relevance import input_kernel, median_length_scale
from distreduce.sharding.merge import row_keys
from distreduce.sharding.sample import Sample

CHOICE_SAMPLES = 400  # learning length scales costs n³, and more samples hardly move them
PREDICTION_SAMPLES = 2000  # left-out predictions, once the scales are known, are cheaper
MOST_LEARNED = 2000  # features with a length scale of their own; images and counts of words may have many more
# Length scales without a learned metric, in units of the median.
FACTORS = (0.5, 1.0, 2.0)
# Without targets nothing tells how smooth the map should be: the paper's ridge.
UNSUPERVISED_RIDGE = 1e-2


def wants_choice(estimator: Any) -> bool:
    """Return whether any parameter is left to the data."""
    chosen = (getattr(estimator, name, None) for name in ("eta", "map_reg", "length_scale"))
    return any(isinstance(value, str) and value == "auto" for value in chosen)


def find_groups(features: Any, *, precomputed: bool = False) -> Index:
    """Return a number for each sample, the same for samples with equal features, which are left out together."""
    if precomputed:
        first = (features == 0).argmax(axis=1)  # of the samples at distance zero
        # Numbered by their distances to the others, which do not depend on the order of the rows.
        return np.unique(np.sort(features, axis=1).sum(axis=1)[first], return_inverse=True)[1].ravel()
    # Rows of a merged sample are sorted: by first appearance the numbers do not depend on units.
    _, first, inverse = np.unique(row_keys(features, None), axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()]


def teach(sample: Sample, folds: Index, size: int) -> tuple[TaughtSamples, Index]:
    """Return at most `size` samples with known targets, evenly spaced, and their numbers."""
    assert sample.kernel_targets is not None
    known = np.flatnonzero(supervised_rows(sample.kernel_targets))
    rows = known[np.unique(np.linspace(0, len(known) - 1, size).astype(int))]
    features = sample.features[np.ix_(rows, rows)] if sample.precomputed else sample.features[rows]
    if sparse.issparse(features) and features.shape[1] <= MOST_LEARNED:
        features = features.toarray()
    targets = sample.kernel_targets[rows]
    return TaughtSamples(features, targets, sample.weights[rows], folds[rows], sample.precomputed), rows


def choose(estimator: Any, sample: Sample, folds: Index, unit: float, workers: Workers) -> MapChoice:
    """Choose kernel, metric and ridge; what the user gave is kept."""
    samples, _ = teach(sample, folds, CHOICE_SAMPLES)
    if len(np.unique(samples.folds)) < 2:  # too few known targets to leave any out, and so to call them noise
        return plain_choice(estimator, sample, unit, has_signal=True)
    ridges = RIDGES if estimator.map_reg == "auto" else (estimator.map_reg / estimator.mu,)
    return choose_map(samples, _candidates(estimator, samples, sample, unit), ridges, workers)


def _candidates(estimator: Any, samples: TaughtSamples, sample: Sample, unit: float) -> Sequence[Candidate]:
    kernel, given = estimator.input_kernel, estimator.length_scale
    if not (isinstance(given, str) and given == "auto") or kernel not in ("rbf", "rq"):
        found = input_kernel(kernel, given, sample, unit)
        require_distances(estimator, found, precomputed=sample.precomputed)
        return [Candidate(found)]
    median = median_length_scale(samples.features, samples.weights, precomputed=samples.precomputed)
    kernels = [RBF(f * median) if kernel == "rbf" else RationalQuadratic(length_scale=f * median) for f in FACTORS]
    candidates = [Candidate(kernel) for kernel in kernels]
    # Only an RBF of not too many features can measure each by its own length.
    if kernel == "rbf" and not samples.precomputed and samples.features.shape[1] <= MOST_LEARNED:
        candidates.append(Candidate(RBF(1.0), median))
    return candidates


def require_distances(estimator: Any, kernel: Kernel, *, precomputed: bool) -> None:
    """Raise InvalidInputError for precomputed distances and a kernel that is no function of a distance."""
    if precomputed and not isinstance(kernel, DistanceKernel):
        raise InvalidInputError(
            f"input_kernel={estimator.input_kernel!r} is not a function of a distance, which metric='precomputed' "
            "needs."
        )


def plain_choice(estimator: Any, sample: Sample, unit: float, *, has_signal: bool) -> MapChoice:
    """Return the choice that needs no targets: median length scale and the paper's ridge, unless others are given."""
    given = estimator.length_scale
    length_scale = "median" if isinstance(given, str) and given == "auto" else given
    kernel = input_kernel(estimator.input_kernel, length_scale, sample, unit)
    ridge = UNSUPERVISED_RIDGE if estimator.map_reg == "auto" else estimator.map_reg
    return MapChoice(kernel, ridge / estimator.mu, None, None, np.nan, has_signal)


def target_settings(settings: Mapping[str, Any], choice: MapChoice, total_weight: float) -> dict[str, Any]:
    """Return the settings of the solver with eta as a number; without signal the targets have no weight (DistR)."""
    if settings["eta"] != "auto":
        return dict(settings)
    if not choice.has_signal:
        return {**settings, "eta": 0.0, "alpha": 1.0}
    return {**settings, "eta": total_weight}  # as the geometry term grows, so that neither outweighs the other


def expected_targets(
    choice: MapChoice, sample: Sample, folds: Index, *, shares: bool, size: int = PREDICTION_SAMPLES
) -> Array:
    """Return what X says about the targets of each sample, its own having no part in it; NaN where they are unknown.

    The coupling sees these instead of the targets: a prototype then stands for samples that are alike in what matters
    to y, not for samples whose noise is alike. (Not on shards: T-steps are much slower with them.)
    """
    assert sample.targets is not None
    samples, rows = teach(replace(sample, kernel_targets=sample.targets), folds, size)
    expected = np.full(sample.targets.shape, np.nan)
    expected[rows] = predict_left_out(choice, samples)
    # Samples that were not drawn are new to the regression on those that were.
    others = np.setdiff1d(np.flatnonzero(supervised_rows(sample.targets)), rows)
    if len(others):
        coefficients, mean = fit_predictor(choice, samples)
        part = sample.features[np.ix_(others, rows)] if sample.precomputed else sample.features[others]
        inputs = None if sample.precomputed else scale_features(samples.features, choice.scales)
        unit = 1.0 if choice.scales is None else choice.scales
        expected[others] = mean + KernelMap(choice.kernel, inputs, coefficients, unit)(part)
    return keep_in_range(expected, sample.targets, shares=shares)


def expected_without_folds(choice: MapChoice, sample: Sample, folds: Index, *, shares: bool) -> dict[int, Array] | None:
    """Return, for every fold, the expected targets of the other samples if the fold does not exist.

    Those of :func:`expected_targets` have seen all other folds: neighbours would show a left-out sample its own target.
    None if there are too few folds with known targets.
    """
    assert sample.targets is not None
    if len(np.unique(folds[supervised_rows(sample.targets)])) < 3:
        return None
    found = {}
    for fold in np.unique(folds):
        rest = np.flatnonzero(folds != fold)
        metric = replace(choice, scales=choice.scales_without(int(fold)), fold_scales=None)
        found[int(fold)] = np.full(sample.targets.shape, np.nan)
        found[int(fold)][rest] = expected_targets(
            metric, sample.take(rest), folds[rest], shares=shares, size=PREDICTION_SAMPLES // 2
        )
    return found


def scale_features(features: Any, scales: Array | None) -> Any:
    """Return the features in the metric, in their own precision."""
    return features if scales is None else divide_columns(features, scales)

"""What "auto" stands for: metric, kernel and ridge of the map, and what the coupling sees of the targets.

Kernel and ridge are those that predict targets of left-out samples best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve

from distreduce._utils.linalg import solve_with_ridges
from distreduce._utils.numerics import divide_columns, evenly_spaced
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError, NumericalError
from distreduce.kernels import RBF, DistanceKernel, Kernel, RationalQuadratic
from distreduce.losses import supervised_rows
from distreduce.mapping.folds import FOLDS, Folds
from distreduce.mapping.kernel_map import NOT_FINITE, Predictions, factorise_kernel, kernel_matrix
from distreduce.mapping.relevance import input_kernel, median_length_scale, relevance_length_scales
from distreduce.sharding.sample import Sample

if TYPE_CHECKING:
    from distreduce.estimators._expected import TargetRegression

CHOICE_SAMPLES = 400  # learning length scales costs n³, and more samples hardly move them
MOST_LEARNED = 2000  # features with a length scale of their own; images and counts of words may have many more
# Length scales without a learned metric, in units of the median.
FACTORS = (0.5, 1.0, 2.0)
# Without targets nothing tells how smooth the map should be: the paper's ridge.
UNSUPERVISED_RIDGE = 1e-2
# Half decades: the error is flat around its minimum.
RIDGES = tuple(10.0 ** np.arange(-4.0, 2.1, 0.5))
# Student's t of the rank correlation between left-out predictions and targets must be above this. The choice between
# candidates and ridges raises it: of 1320 tables of noise (n = 30 to 400; numbers and classes), 5 passed 4.
CLEAR_SIGNAL = 4.0
# Learned scales are learned again without these folds first, and without the others only if they may still win.
FIRST_FOLDS = 2
# A kernel of the features as they are or, with a start, of features divided by scales learned from there.
Candidate = tuple[Kernel, float | None]


@dataclass(frozen=True)
class MapChoice:
    """Kernel, metric and ridge of the out-of-sample map, and how well they predict left-out targets."""

    kernel: Kernel  # of the features divided by `scales`
    ridge: float  # λ/μ of the map
    scales: Array | None  # (d,), in which the metric measures each feature; None leaves the features as they are
    fold_scales: Sequence[Array] | None  # the scales as learned without each fold
    error: float  # squared error of left-out targets, relative to that of their mean; NaN if it was not measured
    has_signal: bool  # whether predictions follow the targets, or there were too few known targets to tell
    misses: Array | None = None  # squared error of each left-out part, if it was measured
    predictions: Predictions | None = None  # further features of the map, if it has them
    alone: MapChoice | None = None  # the choice for the features alone, if the map has predictions
    regression: TargetRegression | None = None  # that the predictions come from

    @property
    def metric(self) -> MapChoice:
        """The choice for the features alone, in whose metric samples are near to each other."""
        return self.alone or self

    def scales_without(self, fold: int) -> Array | None:
        """Return the metric that has not seen a fold."""
        return self.scales if self.fold_scales is None else self.fold_scales[fold]


def wants_choice(estimator: Any) -> bool:
    """Return whether any parameter is left to the data."""
    chosen = (getattr(estimator, name, None) for name in ("eta", "map_reg", "length_scale"))
    return any(isinstance(value, str) and value == "auto" for value in chosen)


def draw_known(sample: Sample, Y: Array, size: int) -> tuple[Sample, Index]:
    """Return at most `size` samples whose targets Y are known, evenly spaced, and their numbers."""
    known = np.flatnonzero(supervised_rows(Y))
    rows = known[evenly_spaced(len(known), size)]
    drawn = sample.take(rows)
    if sparse.issparse(drawn.features) and drawn.features.shape[1] <= MOST_LEARNED:
        drawn = replace(drawn, features=drawn.features.toarray())
    return drawn, rows


def choose(estimator: Any, sample: Sample, folds: Folds, unit: float, workers: Workers) -> MapChoice:
    """Choose kernel, metric and ridge; what the user gave is kept."""
    assert sample.kernel_targets is not None
    drawn, rows = draw_known(sample, sample.kernel_targets, CHOICE_SAMPLES)
    folds = folds.take(rows)
    # Too few known targets to leave any out, and so to call them noise.
    if min(len(folds.numbers), len(np.unique(folds.sites))) < 2:
        return choose_without_targets(estimator, sample, unit, has_signal=True)
    ridges = RIDGES if estimator.map_reg == "auto" else (estimator.map_reg / estimator.mu,)
    candidates = _candidates(estimator, drawn, sample, unit)
    choice = choose_map(drawn, sample.kernel_targets[rows], folds, candidates, ridges, workers)
    if choice.has_signal or estimator.eta != "auto":
        return choice
    return choose_without_targets(estimator, sample, unit, has_signal=False)


def _candidates(estimator: Any, drawn: Sample, sample: Sample, unit: float) -> Sequence[Candidate]:
    kernel, given = estimator.input_kernel, estimator.length_scale
    if not (isinstance(given, str) and given == "auto") or kernel not in ("rbf", "rq"):
        found = input_kernel(kernel, given, sample, unit)
        require_distances(estimator, found, precomputed=sample.precomputed)
        return [(found, None)]
    median = median_length_scale(drawn.features, drawn.weights, precomputed=drawn.precomputed)
    kernels = [RBF(f * median) if kernel == "rbf" else RationalQuadratic(length_scale=f * median) for f in FACTORS]
    candidates: list[Candidate] = [(kernel, None) for kernel in kernels]
    # Only an RBF of not too many features can measure each by its own length.
    if kernel == "rbf" and not drawn.precomputed and drawn.features.shape[1] <= MOST_LEARNED:
        candidates.append((RBF(1.0), median))
    return candidates


def require_distances(estimator: Any, kernel: Kernel, *, precomputed: bool) -> None:
    """Raise InvalidInputError for precomputed distances and a kernel that is not a function of a distance."""
    if precomputed and not isinstance(kernel, DistanceKernel):
        raise InvalidInputError(
            f"input_kernel={estimator.input_kernel!r} is not a function of a distance, which metric='precomputed' "
            "needs."
        )


def choose_without_targets(estimator: Any, sample: Sample, unit: float, *, has_signal: bool) -> MapChoice:
    """Return the choice that needs no targets: median length scale and the paper's ridge, unless others are given."""
    given = estimator.length_scale
    length_scale = "median" if isinstance(given, str) and given == "auto" else given
    kernel = input_kernel(estimator.input_kernel, length_scale, sample, unit)
    ridge = UNSUPERVISED_RIDGE if estimator.map_reg == "auto" else estimator.map_reg
    return MapChoice(kernel, ridge / estimator.mu, None, None, np.nan, has_signal)


def resolve_eta(settings: Mapping[str, Any], choice: MapChoice, total_weight: float) -> dict[str, Any]:
    """Return the settings of the solver with eta as a number; without signal the targets have no weight (DistR)."""
    if settings["eta"] != "auto":
        return dict(settings)
    if not choice.has_signal:
        return {**settings, "eta": 0.0, "alpha": 1.0}
    return {**settings, "eta": total_weight}  # as the geometry term grows, so that neither outweighs the other


def choose_map(
    sample: Sample,
    Y: Array,
    folds: Folds,
    candidates: Sequence[Candidate],
    ridges: Sequence[float] = RIDGES,
    workers: Workers = SERIAL,
) -> MapChoice:
    r"""Choose the candidate and the ridge whose kernel ridge regression predicts left-out targets Y best.

    With h the weights, F_g the samples of fold g and the others' mean :math:`\bar y_g`, the error is

    .. math::
        \frac{\sum_g \sum_{i \in F_g} h_i |y_i - \hat y_g(x_i)|^2}{\sum_g \sum_{i \in F_g} h_i |y_i - \bar y_g|^2},
        \qquad \hat y_g(x) = \bar y_g + K_g(x, X_{-g})\,(K_g + \lambda W^{-1})^{-1} (Y_{-g} - \bar y_g)

    where K_g is the kernel in a metric that was learned without the fold: left-out samples are new to all of it.
    """
    errors, learned_scales = _left_out_errors(sample, Y, folds, candidates, ridges, workers)
    totals = errors @ folds.weights
    relative = totals[:, 1:] / np.maximum(totals[:, :1], np.finfo(float).tiny)
    best, ridge = divmod(int(relative.argmin()), len(ridges))
    (kernel, start), scales, fold_scales = candidates[best], None, None
    if start is not None:
        scales = relevance_length_scales(sample.features, Y, sample.weights, start)
        fold_scales = [learned_scales.get((best, fold), scales) for fold in range(FOLDS)]  # some folds may be empty
    error, misses = float(relative[best, ridge]), errors[best, 1 + ridge]
    choice = MapChoice(kernel, float(ridges[ridge]), scales, fold_scales, error, True, misses)
    predicted = predict_left_out(choice, sample, Y, folds)
    return replace(choice, has_signal=_is_clear(predicted, Y[folds.sample], folds))


def _left_out_errors(
    sample: Sample, Y: Array, folds: Folds, candidates: Sequence[Candidate], ridges: Sequence[float], workers: Workers
) -> tuple[Array, dict[tuple[int, int], Array]]:
    """Return squared errors (candidates, 1 + ridges, parts), the mean's first, and scales by (candidate, fold).

    Learned scales that clearly lose the first two folds are not learned for the others: their errors stay infinite.
    """
    used, h = folds.numbers, folds.weights
    errors = np.full((len(candidates), 1 + len(ridges), len(h)), np.inf)
    errors[:, 0] = 1.0
    learned_scales: dict[tuple[int, int], Array] = {}

    plain = [k for k, (_, start) in enumerate(candidates) if start is None]
    similarity = {k: _similarity(sample, candidates[k][0], None) for k in plain}  # serves all folds

    def leave_out(pairs: Sequence[tuple[int, int]]) -> None:
        """Fill in the errors of the pairs (candidate, fold)."""

        def predict(task: int, n_tasks: int) -> tuple[Array, Array | None]:
            k, fold = pairs[task]
            return _predict_fold(sample, Y, candidates[k], similarity.get(k), folds, fold, ridges)

        for (k, fold), (found, scales) in zip(pairs, workers.run(predict, len(pairs)), strict=True):
            errors[k][:, folds.out(fold)] = found
            if scales is not None:
                learned_scales[k, fold] = scales

    learned = [k for k, (_, start) in enumerate(candidates) if start is not None]
    first, later = used[:FIRST_FOLDS], used[FIRST_FOLDS:]
    leave_out([(k, fold) for k in plain for fold in used] + [(k, fold) for k in learned for fold in first])
    seen = np.isin(folds.fold, first)
    able = [k for k in learned if _may_win(errors[:, :, seen], h[seen], k)]
    leave_out([(k, fold) for k in able for fold in later])
    return errors, learned_scales


def _may_win(errors: Array, h: Array, candidate: int) -> bool:
    """Return whether no other is better on some samples by two standard errors and 1 % of the variance."""
    misses, variance = errors[:, 1:], h @ errors[candidate, 0] / h.sum()
    own, best = (min(some.reshape(-1, len(h)), key=lambda m: m @ h) for some in (misses[candidate], misses))
    loss = own - best
    mean = h @ loss / h.sum()
    return bool(mean <= max(2.0 * np.sqrt(h @ (loss - mean) ** 2) / h.sum(), 0.01 * variance))


def _predict_fold(
    sample: Sample, Y: Array, candidate: Candidate, K: Array | None, folds: Folds, fold: int, ridges: Sequence[float]
) -> tuple[Array, Array | None]:
    """Return squared errors (1 + ridges, left out) of a fold, the mean's first, and the metric learned without it.

    K is the candidate's kernel matrix, or None if its metric must be learned.
    """
    out, (rest, h), (kernel, start) = folds.sample[folds.out(fold)], folds.rest(fold), candidate
    scales = None
    if K is None:
        assert start is not None
        # Not from the scales of all samples: few steps would not forget what these know of the fold.
        scales = relevance_length_scales(sample.features[rest], Y[rest], h, start)
        K = _similarity(sample, kernel, scales)
    mean = h @ Y[rest] / h.sum()
    root = np.sqrt(h)
    left, right = K[np.ix_(out, rest)] * root, root[:, None] * (Y[rest] - mean)
    predicted = solve_with_ridges(K[np.ix_(rest, rest)] * np.outer(root, root), left, right, ridges)
    missed = Y[out] - mean
    errors = [(missed**2).sum(axis=1), *(((missed - p) ** 2).sum(axis=1) for p in predicted)]
    return np.array(errors), scales


def _is_clear(predicted: Array, Y: Array, folds: Folds) -> bool:
    """Whether predictions and targets are in more nearly the same order than chance explains; weights count as copies.

    Ranks, because a few large targets can hold most of the squared error: it then says little about the others. Samples
    of a group are not independent: the means of groups, of any size, must also be above zero, by three standard errors.
    """
    h = folds.weights[:, None]
    A, B = _ranks(predicted, folds.weights), _ranks(Y, folds.weights)
    if folds.units is not None:
        group = np.unique(folds.units[folds.sample], return_inverse=True)[1]
        means = np.bincount(group, (h * A * B).sum(axis=1)) / np.bincount(group, folds.weights)
        if means.sum() <= 3.0 * np.sqrt(len(means)) * means.std(ddof=1):
            return False
    # With several columns, in units of its deviation if the rows of one were permuted at random.
    scale = np.sqrt(np.vdot(A.T @ (h * A), B.T @ (h * B)))
    correlation = float((h * A * B).sum()) / max(scale, np.finfo(float).tiny)
    t_squared = correlation**2 * max(h.sum() - 2.0, 0.0) / max(1.0 - correlation**2, np.finfo(float).eps)
    return correlation > 0 and t_squared > CLEAR_SIGNAL**2


def _ranks(values: Array, weights: Array) -> Array:
    """Return the weight below minus the weight above each value, by column."""
    return np.stack([np.sign(column[:, None] - column) @ weights for column in values.T], axis=1)


def predict_left_out(choice: MapChoice, sample: Sample, Y: Array, folds: Folds) -> Array:
    """Return the targets (k, c) of each part of the samples as the other folds predict them."""
    predicted = np.empty((len(folds.sample), Y.shape[1]))
    K = None
    for fold in folds.numbers:
        out, (rest, h) = folds.out(fold), folds.rest(fold)
        if K is None or choice.fold_scales is not None:  # one metric for all folds needs one matrix
            K = _similarity(sample, choice.kernel, choice.scales_without(fold))
        mean = h @ Y[rest] / h.sum()
        coefficients = _solve(K[np.ix_(rest, rest)], choice.ridge / h, Y[rest] - mean)
        predicted[out] = mean + K[np.ix_(folds.sample[out], rest)] @ coefficients
    return predicted


def _similarity(sample: Sample, kernel: Kernel, scales: Array | None) -> Array:
    """Return the kernel matrix (n, n) of the features divided by `scales`."""
    features = sample.features if scales is None else sample.features / scales
    K = kernel_matrix(features, kernel, precomputed=sample.precomputed)
    if not np.isfinite(K).all():  # now, because the choices below would only warn
        raise NumericalError(NOT_FINITE)
    return K


def _solve(K: Array, ridge: Array, Y: Array) -> Array:
    """(K + diag(ridge))⁻¹ Y."""
    K[np.diag_indices(len(K))] += ridge
    return np.asarray(cho_solve(factorise_kernel(K), Y))


def fit_predictor(choice: MapChoice, sample: Sample, Y: Array) -> tuple[Array, Array]:
    """Return coefficients (n, c) and mean (c,) of the regression on all samples, for predictions K(x, X) B + mean."""
    h = sample.weights
    mean = h @ Y / h.sum()
    return _solve(_similarity(sample, choice.kernel, choice.scales), choice.ridge / h, Y - mean), mean


def scale_features(features: Any, scales: Array | None) -> Any:
    """Return the features in the metric, in their own precision."""
    return features if scales is None else divide_columns(features, scales)

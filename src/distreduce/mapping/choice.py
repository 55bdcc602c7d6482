"""The kernel and the ridge of the out-of-sample map, chosen by how well they predict targets that were left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, eigh
from sklearn.utils import check_random_state

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index
from distreduce.kernels import RBF, DistanceKernel, Kernel
from distreduce.mapping.kernel_map import factorise_kernel
from distreduce.mapping.relevance import relevance_length_scales

FOLDS = 5
# Half decades: the error is flat around its minimum.
RIDGES = tuple(10.0 ** np.arange(-4.0, 2.1, 0.5))
# The error on left-out targets must be below that of their mean by so many standard errors: on the safe side. Of 100
# tables of noise (n = 100, d = 4), 2 passed 1.6 standard errors and none passed 2.
CLEAR_SIGNAL = 2.5


@dataclass(frozen=True)
class Candidate:
    """A kernel on features divided by `scales`; scales learned from `start` are relearned without each fold."""

    kernel: Kernel
    scales: Array | None = None
    start: float | None = None

    @property
    def learned(self) -> bool:
        """Whether the scales were learned from the targets."""
        return self.start is not None


@dataclass(frozen=True)
class MapChoice:
    """Kernel, metric and ridge of the out-of-sample map, and what they are worth on left-out samples.

    Attributes
    ----------
    kernel : Kernel
        Kernel of the features divided by `scales`.
    ridge : float
        λ/μ of the map.
    scales : (d,) array or None
        One length per feature, in which the metric measures it; None leaves the features as they are.
    fold_scales : sequence of FOLDS arrays, or None
        The scales as learned without each fold.
    error : float
        Squared error of left-out targets, relative to that of their mean; NaN if it was not measured.
    has_signal : bool
        Whether that is clearly below one, or there were too few known targets to tell.
    """

    kernel: Kernel
    ridge: float
    scales: Array | None
    fold_scales: Sequence[Array] | None
    error: float
    has_signal: bool

    def scales_without(self, fold: int) -> Array | None:
        """Return the metric that has not seen a fold."""
        return self.scales if self.fold_scales is None else self.fold_scales[fold]


@dataclass(frozen=True)
class TaughtSamples:
    """Samples with known targets that the choice is made on.

    Attributes
    ----------
    features : (n, d) array or sparse matrix
        Rows of X or, if `precomputed`, their mutual distances (n, n).
    targets : (n, c) array
        Known targets.
    weights : (n,) array
        Weights of the samples.
    folds : (n,) array
        Which fold each sample is in.
    precomputed : bool
        Whether `features` are distances.
    """

    features: Any
    targets: Array
    weights: Array
    folds: Index
    precomputed: bool = False

    def similarity(self, kernel: Kernel, scales: Array | None) -> Array:
        """Return the kernel matrix (n, n) of the features divided by `scales`."""
        if self.precomputed:
            assert isinstance(kernel, DistanceKernel)
            return kernel.of_sq_distance(np.asarray(self.features) ** 2)
        return kernel(self.features if scales is None else self.features / scales)


def assign_folds(groups: Index) -> Index:
    """Return the fold of each sample, at random but always the same; a group (equal features) is left out together."""
    n_groups = int(groups.max()) + 1
    return np.asarray(check_random_state(0).permutation(n_groups)[groups] % FOLDS)


def learn_candidate(samples: TaughtSamples, start: float) -> Candidate:
    """Return the candidate with one learned length scale per feature (ARD)."""
    scales = relevance_length_scales(samples.features, samples.targets, samples.weights, start)
    return Candidate(RBF(1.0), scales, start)


def choose_map(
    samples: TaughtSamples,
    candidates: Sequence[Candidate],
    ridges: Sequence[float] = RIDGES,
    workers: Workers = SERIAL,
) -> MapChoice:
    r"""Choose the candidate and the ridge whose kernel ridge regression predicts left-out targets best.

    With h the weights, F_g the samples of fold g and the others' mean :math:`\bar y_g`, the error is

    .. math::
        \frac{\sum_g \sum_{i \in F_g} h_i |y_i - \hat y_g(x_i)|^2}{\sum_g \sum_{i \in F_g} h_i |y_i - \bar y_g|^2},
        \qquad \hat y_g(x) = \bar y_g + K_g(x, X_{-g})\,(K_g + \lambda W^{-1})^{-1} (Y_{-g} - \bar y_g)

    where K_g is the kernel in a metric that was learned without the fold: left-out samples are new to all of it.
    """
    used = np.unique(samples.folds)

    def predict(task: int, n_tasks: int) -> tuple[Array, Array]:
        candidate, fold = candidates[task // len(used)], int(used[task % len(used)])
        return _predict_fold(samples, candidate, fold, ridges)

    found = workers.run(predict, len(candidates) * len(used))
    # Error of every sample for its mean (first) and for each ridge, by candidate.
    misses = np.empty((len(candidates), 1 + len(ridges), len(samples.targets)))
    for task, (errors, _) in enumerate(found):
        misses[task // len(used)][:, samples.folds == used[task % len(used)]] = errors
    totals = misses @ samples.weights
    relative = totals[:, 1:] / np.maximum(totals[:, :1], np.finfo(float).tiny)
    best, ridge = divmod(int(relative.argmin()), len(ridges))
    chosen = candidates[best]
    fold_scales = None
    if chosen.scales is not None:
        learned = {int(fold): found[best * len(used) + k][1] for k, fold in enumerate(used)}
        fold_scales = [learned.get(fold, chosen.scales) for fold in range(FOLDS)]  # some folds may be empty
    return MapChoice(
        kernel=chosen.kernel,
        ridge=float(ridges[ridge]),
        scales=chosen.scales,
        fold_scales=fold_scales,
        error=float(relative[best, ridge]),
        has_signal=_is_clear(misses[best, 0] - misses[best, 1 + ridge], samples.weights),
    )


def _predict_fold(
    samples: TaughtSamples, candidate: Candidate, fold: int, ridges: Sequence[float]
) -> tuple[Array, Array]:
    """Return squared errors (1 + ridges, left out) of a fold, the mean's first, and the metric learned without it."""
    out = samples.folds == fold
    rest, Y, h = ~out, samples.targets, samples.weights
    scales = candidate.scales
    if candidate.learned:
        assert candidate.start is not None
        # Not from the scales of all samples: few steps would not forget what these know of the fold.
        scales = relevance_length_scales(samples.features[rest], Y[rest], h[rest], candidate.start)
    K = samples.similarity(candidate.kernel, scales)
    mean = h[rest] @ Y[rest] / h[rest].sum()
    root = np.sqrt(h[rest])
    # One eigendecomposition of √h K √h serves all ridges.
    values, vectors = eigh(K[np.ix_(rest, rest)] * np.outer(root, root), check_finite=False)
    left = (K[np.ix_(out, rest)] * root) @ vectors
    right = vectors.T @ (root[:, None] * (Y[rest] - mean))
    missed = Y[out] - mean
    predicted = (left @ (right / (np.maximum(values, 0.0) + ridge)[:, None]) for ridge in ridges)
    errors = [(missed**2).sum(axis=1), *(((missed - p) ** 2).sum(axis=1) for p in predicted)]
    return np.array(errors), np.ones(0) if scales is None else scales


def predict_left_out(choice: MapChoice, samples: TaughtSamples) -> Array:
    """Return the targets (n, c) of each sample as the samples of the other folds predict them."""
    predicted = np.empty_like(samples.targets)
    for fold in np.unique(samples.folds):
        out = samples.folds == fold
        rest, h = ~out, samples.weights
        K = samples.similarity(choice.kernel, choice.scales_without(int(fold)))
        mean = h[rest] @ samples.targets[rest] / h[rest].sum()
        coefficients = _solve(K[np.ix_(rest, rest)], choice.ridge / h[rest], samples.targets[rest] - mean)
        predicted[out] = mean + K[np.ix_(out, rest)] @ coefficients
    return predicted


def fit_predictor(choice: MapChoice, samples: TaughtSamples) -> tuple[Array, Array]:
    """Return coefficients (n, c) and mean (c,) of the regression on all samples, for predictions K(x, X) B + mean."""
    h = samples.weights
    mean = h @ samples.targets / h.sum()
    K = samples.similarity(choice.kernel, choice.scales)
    return _solve(K, choice.ridge / h, samples.targets - mean), mean


def _solve(K: Array, ridge: Array, Y: Array) -> Array:
    """(K + diag(ridge))⁻¹ Y."""
    K[np.diag_indices(len(K))] += ridge
    return np.asarray(cho_solve(factorise_kernel(K), Y))


def _is_clear(gains: Array, weights: Array) -> bool:
    """Whether the mean gain is more than `CLEAR_SIGNAL` standard errors above zero; weights count as copies."""
    total = weights.sum()
    mean = weights @ gains / total
    deviation = np.sqrt(weights @ (gains - mean) ** 2 / total)
    return bool(mean > CLEAR_SIGNAL * deviation / np.sqrt(total))

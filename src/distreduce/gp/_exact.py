"""Gaussian processes, exact or conditioned on the nearest samples: training, prediction, leave-one-out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.linalg import LinAlgError, cho_solve, solve_triangular
from scipy.spatial import KDTree

from distreduce._utils.linalg import jittered_cholesky, solve_lower
from distreduce._utils.numerics import blocks, evenly_spaced
from distreduce._utils.threads import KERNEL, MIN_EXPONENT, PART, bounded_exp, single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError, NumericalError
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.kernels import RBF, DistanceKernel, Matern32
from distreduce.mapping.kernel_map import kernel_rows, weighted_rows
from distreduce.mapping.relevance import GAUSSIAN, negative_log_likelihood
from distreduce.sharding.merge import merge_duplicates

BATCH_NUMBERS = 8_000_000  # covariances held at once in a prediction: 64 MB
MAX_EXACT = 10_000  # an exact GP holds n² numbers (0.8 GB here) and takes n³ operations
NEIGHBOURS = 64  # more hardly change predictions, and each takes k³ operations
# A tree finds neighbours fast in few dimensions only; in more, every query visits most of the samples.
FEW_DIMENSIONS, SEARCHED = 16, 30_000
# A neighbour may be this share farther away than the true one. At 100,000 samples predictions take 0.6 of the time,
# and the log density is 0.0007 lower.
SLACK = 0.5
NEIGHBOUR_JITTER = 1e-8  # relative to the signal
PIVOTS = 4
EVEN_COLUMNS = 16  # a multiple of what BLAS solves at once
JITTERS = (1e-12, 1e-10, 1e-8, 1e-6)  # relative to the mean variance of the inputs


@dataclass(frozen=True)
class MergedRows:
    """Distinct inputs (m, d), the mean targets of equal ones (m, c), their total weight, and Σ h |y − mean|² (c,)."""

    inputs: Array
    targets: Array
    weights: Array
    scatter: Array

    @classmethod
    def of(cls, inputs: Array, targets: Array, weights: Array) -> MergedRows:
        """Merge rows with equal inputs, in an order that does not depend on that of the rows.

        If all equal rows agree, they are copies, which say nothing about the noise: only ratios of weights then count.
        """
        distinct = merge_duplicates(inputs, None, weights)
        used = distinct.group >= 0
        group, h = distinct.group[used], weights[used]
        sums = [np.bincount(group, weights=h * y, minlength=len(distinct.rows)) for y in targets[used].T]
        means = np.stack(sums, axis=1) / distinct.weights[:, None]
        scatter = h @ (targets[used] - means[group]) ** 2
        independent = bool((scatter > 1e-9 * h.sum()).any())
        totals = distinct.weights if independent else distinct.weights / distinct.weights.mean()
        return cls(inputs[distinct.rows], means, totals, scatter)

    def thin(self, size: int) -> MergedRows:
        """At most `size` of the rows, evenly spaced; the scatter shrinks with the weight."""
        if len(self.inputs) <= size:
            return self
        rows = evenly_spaced(len(self.inputs), size)
        extra = self.weights.sum() - len(self.weights)
        kept = (self.weights[rows].sum() - len(rows)) / extra if extra > 0 else 0.0
        return MergedRows(self.inputs[rows], self.targets[rows], self.weights[rows], kept * self.scatter)

    def likelihood(self, parameters: Array, kernel: RBF | Matern32 = GAUSSIAN) -> tuple[float, Array]:
        r"""−log p(y) of all samples, equal ones included, from the merged rows alone, and its gradient.

        A row of weight h stands for h samples of mean :math:`\bar y` and noise :math:`\sigma^2`. With m rows,

        .. math:: -\log p(\bar y) + \tfrac{c}{2} (\textstyle\sum_i h_i - m) \log\sigma^2 + \mathrm{scatter} / 2\sigma^2
        """
        # The covariance needs differences of inputs only, but the gradient squares inputs: an offset would swamp them.
        centred = self.inputs - self.inputs.mean(axis=0)
        value, gradient = negative_log_likelihood(parameters, centred, self.targets, self.weights, kernel)
        copies = 0.5 * self.targets.shape[1] * (self.weights.sum() - len(self.weights))
        within = 0.5 * float(self.scatter.sum()) * np.exp(-parameters[-1])
        gradient[-1] += copies - within
        return value + copies * parameters[-1] + within, gradient


def find_batches(n: int, each: int) -> Iterator[slice]:
    """Batches of n rows, each of which takes so many numbers."""
    return blocks(n, max(1, BATCH_NUMBERS // each))


def check_exact_size(n: int, advice: str) -> None:
    """Raise InvalidInputError if an exact GP of n samples would fill the memory and not end in reasonable time."""
    if n > MAX_EXACT:
        raise InvalidInputError(f"An exact GP of {n} samples is too large (at most {MAX_EXACT}); {advice}.")


@dataclass(eq=False)
class TrainedGP(ABC):
    """What GPs with known hyperparameters share; prior mean 0.

    The target (n,) or (n, c) is standardised; several share the covariance. The `kernel` is the correlation K_l, a
    function of the distance in units of the length scales. A row of weight h stands for h samples: its noise is σ²/h.
    """

    inputs: Array
    target: Array
    hyperparameters: Hyperparameters
    kernel: DistanceKernel = GAUSSIAN
    weights: Array | None = None

    def __post_init__(self) -> None:
        h = 1.0 if self.weights is None else self.weights
        self._prepare(np.full(len(self.inputs), self.hyperparameters.noise) / h)

    @abstractmethod
    def _prepare(self, noise: Array) -> None:
        """Compute what predictions need, given the noise of each row."""


class ExactGP(TrainedGP):
    r"""Posterior given all inputs.

    .. math::
        m(x) = k_x^\top\Sigma^{-1}y, \qquad v(x) = s + \sigma^2 - k_x^\top\Sigma^{-1}k_x, \qquad
        \Sigma = s K_l + \sigma^2 I
    """

    def _prepare(self, noise: Array) -> None:
        with single_threaded_blas():  # a loaded model must have the same bits with any number of threads
            self._factor = factorise(self._covariance(self.inputs), noise)
            self._weights = cho_solve((self._factor, True), self.target)

    def _covariance(self, others: Array) -> Array:
        """s·K(x, X)."""
        scales = self.hyperparameters.length_scales
        return self.hyperparameters.signal * kernel_rows(self.kernel, others / scales, self.inputs / scales)

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean of the targets and their common variance (noise included), the same bits in any batch."""
        mean, variance = np.empty((len(inputs), *self.target.shape[1:])), np.empty(len(inputs))
        prior = self.hyperparameters.signal + self.hyperparameters.noise
        for rows in find_batches(len(inputs), len(self.inputs)):
            cross = self._covariance(inputs[rows])
            t, mean[rows] = len(cross), self._weigh(cross)
            # The rounding of a solution depends on its place among the last few columns: here are none.
            even = np.pad(cross, ((0, -t % EVEN_COLUMNS), (0, 0)))
            explained = solve_lower(self._factor, even.T)
            variance[rows] = prior - np.einsum("ij,ij->j", explained, explained)[:t]
        # An observation varies at least as much as its noise; rounding can go below.
        return mean, np.maximum(variance, self.hyperparameters.noise)

    def mean(self, inputs: Array) -> Array:
        """The mean alone, without the equations that the variance takes."""
        mean = np.empty((len(inputs), *self.target.shape[1:]))
        for rows in find_batches(len(inputs), len(self.inputs)):
            mean[rows] = self._weigh(self._covariance(inputs[rows]))
        return mean

    def _weigh(self, cross: Array) -> Array:
        weights = self._weights.reshape(len(self.inputs), -1)
        return weighted_rows(cross, weights).reshape(-1, *self.target.shape[1:])

    def covariance(self, inputs: Array) -> Array:
        """Joint covariance (t, t) of the target at the rows, noise included."""
        explained = solve_triangular(self._factor, self._covariance(inputs).T, lower=True)
        scaled = inputs / self.hyperparameters.length_scales
        prior = self.hyperparameters.signal * self.kernel(scaled)
        return np.asarray(prior - explained.T @ explained + self.hyperparameters.noise * np.eye(len(inputs)))

    def leave_one_out(self) -> tuple[Array, Array]:
        r"""Mean and variance of each training target given all others ([1]_, equation 5.12).

        .. math:: m_i = y_i - [\Sigma^{-1}y]_i / [\Sigma^{-1}]_{ii}, \qquad v_i = 1/[\Sigma^{-1}]_{ii}

        References
        ----------
        .. [1] Rasmussen, Williams (2006). Gaussian Processes for Machine Learning. MIT Press.
        """
        # Σ⁻¹ = F⁻ᵀF⁻¹ with the factor F: its diagonal is the squared norm of each column of F⁻¹.
        half = solve_triangular(self._factor, np.eye(len(self.target)), lower=True, check_finite=False)
        precision = np.einsum("ij,ij->j", half, half)
        variance = 1.0 / precision
        if self.weights is not None:  # of one sample of the row, not of the mean of all
            variance += self.hyperparameters.noise * (1.0 - 1.0 / self.weights)
        return self.target - self._weights / precision, variance


def factorise(covariance: Array, noise: float | Array) -> Array:
    """Lower Cholesky factor of K + diag(σ²), with a growing jitter if rounding left K indefinite."""
    matrix = covariance.copy(order="F")  # the factor overwrites it
    matrix[np.diag_indices(len(matrix))] += noise
    try:
        return np.tril(jittered_cholesky(matrix, float(np.mean(covariance.diagonal())), JITTERS)[0])
    except FloatingPointError as error:
        raise NumericalError("The covariance of the training inputs is not finite; scale X.") from error
    except LinAlgError as error:
        message = "The covariance of the training inputs cannot be factorised even with jitter; scale X."
        raise NumericalError(message) from error


class NeighbourGP(TrainedGP):
    r"""Posterior of the targets given the k nearest samples in the learned metric [1]_.

    .. math:: m(x) = k_x^\top\Sigma_x^{-1}y_x, \qquad v(x) = s + \sigma^2 - k_x^\top\Sigma_x^{-1}k_x

    where the subscript x selects the neighbours of x. Fitting takes a search tree only, so that every sample takes
    part, and a prediction takes k³ operations, whatever n is.

    References
    ----------
    .. [1] Allison, Stephenson, F, Pyzer-Knapp (2023). Leveraging locality and robustness to achieve massively scalable
       Gaussian process regression. NeurIPS.
    """

    def _prepare(self, noise: Array) -> None:
        if self.inputs.shape[1] > FEW_DIMENSIONS and len(self.inputs) > SEARCHED:
            rows = evenly_spaced(len(self.inputs), SEARCHED)
            self.inputs, self.target, noise = self.inputs[rows], self.target[rows], noise[rows]
            self.weights = None if self.weights is None else self.weights[rows]
        self._noise = noise
        self._scaled = self.inputs / self.hyperparameters.length_scales
        self._search = KDTree(self._scaled)

    def mean(self, inputs: Array) -> Array:
        """The mean of :meth:`moments`."""
        return self.moments(inputs)[0]

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean of the targets and their common variance (noise included) at each row, in batches of bounded size."""
        found, k = self.hyperparameters, min(NEIGHBOURS, len(self.inputs))
        targets = self.target.reshape(len(self.target), -1)
        mean, explained = np.empty((len(inputs), targets.shape[1])), np.empty(len(inputs))
        for rows in find_batches(len(inputs), 4 * k * (k + self.inputs.shape[1])):
            scaled = inputs[rows] / found.length_scales
            near = self._search.query(scaled, np.arange(1, k + 1), eps=SLACK)[1]
            known = (self._scaled, targets, self._noise, found.signal, isinstance(self.kernel, Matern32))
            _condition_on_neighbours(scaled, near, *known, mean[rows], explained[rows])
        variance = np.maximum(found.signal + found.noise - explained, found.noise)
        return mean.reshape(-1, *self.target.shape[1:]), variance


@njit(inline="always", error_model="numpy")
def _correlation(sq_distance: float, rough: bool) -> float:
    """`RBF` with length scale 1, or `Matern32`, of a squared distance."""
    if rough:
        root = min(np.sqrt(3.0 * sq_distance), -MIN_EXPONENT)
        return (1.0 + root) * bounded_exp(-root)
    return bounded_exp(max(-0.5 * sq_distance, MIN_EXPONENT))


@njit(**KERNEL)
def _condition_on_neighbours(points, near, inputs, targets, noise, signal, rough, mean, explained):  # type: ignore[no-untyped-def]
    r"""Fill mean (t, c) and explained variance (t,) of each point: one system of k equations after another.

    The columns of the k×(k+1+c) array [Σ, k_x, Y] become [U, U⁻ᵀk_x, U⁻ᵀY] with Σ = UᵀU, row by row; then
    m = (U⁻ᵀk_x)ᵀ(U⁻ᵀY) and k_xᵀΣ⁻¹k_x = |U⁻ᵀk_x|². Only the upper triangle is used.
    """
    k, d, c = near.shape[1], inputs.shape[1], targets.shape[1]
    wide = k + 1 + c
    around, rows = np.empty((d, k)), np.empty((k, wide))
    for t in range(len(points)):
        for j in range(k):
            for f in range(d):
                around[f, j] = inputs[near[t, j], f] - points[t, f]  # differences first: no squares of large offsets
            rows[j, k + 1 :] = targets[near[t, j]]
        for i in range(k):
            row = rows[i]
            row[i : k + 1] = 0.0
            for f in range(d):
                here = around[f, i]
                for j in range(i, k):
                    row[j] += (around[f, j] - here) ** 2
                row[k] += here**2
            for j in range(i, k + 1):
                row[j] = signal * _correlation(row[j], rough)
            row[i] += noise[near[t, i]] + NEIGHBOUR_JITTER * signal
        _eliminate(rows, k)
        mean[t], explained[t] = 0.0, 0.0
        for i in range(k):
            explained[t] += rows[i, k] ** 2
            for j in range(c):
                mean[t, j] += rows[i, k] * rows[i, k + 1 + j]


@njit(**PART)
def _eliminate(rows, k):  # type: ignore[no-untyped-def]
    """Turn [Σ, B] into [U, U⁻ᵀB] in place; four pivots at a time, so that rows are read and written less often."""
    wide = rows.shape[1]
    for first in range(0, k, PIVOTS):
        last = min(first + PIVOTS, k)
        for p in range(first, last):
            for q in range(first, p):
                factor = rows[q, p]
                for j in range(p, wide):
                    rows[p, j] -= factor * rows[q, j]
            scale = 1.0 / np.sqrt(rows[p, p])
            for j in range(p, wide):
                rows[p, j] *= scale
        if last - first < PIVOTS:
            break
        one, two, three, four = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
        for i in range(last, k):
            row, a, b, e, f = rows[i], one[i], two[i], three[i], four[i]
            for j in range(i, wide):
                row[j] -= a * one[j] + b * two[j] + e * three[j] + f * four[j]

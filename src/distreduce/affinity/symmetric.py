"""Symmetric entropic affinity (SEA), the input affinity C_X of the paper, and the row-entropic one that it starts from.

The row-entropic affinity is a Gaussian kernel whose bandwidth γ_i gives every row the same perplexity ξ:
P_ij = exp(−D_ij/γ_i) / Σ_j w_j exp(−D_ij/γ_i), where γ_i makes −Σ_j w_j P_ij log P_ij = log ξ. The diagonal is part of
the row, so that a sample of weight two is a sample repeated twice. A row with a weight of ξ or more at distance zero
cannot have a perplexity as low as ξ: its constraint is slack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from distreduce._utils.text import warn_user
from distreduce._utils.threads import (
    KERNEL,
    MIN_EXPONENT,
    PART,
    SERIAL,
    Workers,
    bounded_exp,
    chunk_count,
    ordered_sum,
    too_few_to_compile,
)
from distreduce._utils.typing import Array
from distreduce.affinity.dual import Dual
from distreduce.affinity.newton import solve
from distreduce.exceptions import AffinityConvergenceWarning, InvalidInputError


def as_distances(sq_distances: ArrayLike) -> Array:
    """The square matrix D as C-contiguous float32 or float64, without a copy if it already is."""
    distances = np.asarray(sq_distances)
    if distances.dtype not in (np.float32, np.float64):
        distances = distances.astype(np.float64)
    low, high = distances.min(), distances.max()  # NaN reaches both extremes, and fails both comparisons
    if not (low >= 0.0 and high < np.inf):
        raise InvalidInputError(
            f"sq_distances must be finite and non-negative, got values from {low} to {high}; "
            "squared distances overflow when the data are too large: rescale them."
        )
    return np.ascontiguousarray(distances)


def as_weights(weights: ArrayLike | None, n: int) -> Array:
    """The weights of n samples, positive for C (a row without weight has no curvature in the dual); ones by default."""
    return np.ones(n) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


def check_perplexity(perplexity: float, weights: Array) -> None:
    """Raise unless the perplexity lies between 1 (a sample is its own neighbour) and the total weight."""
    total = float(weights.sum())
    if not 1.0 <= perplexity <= total:
        raise InvalidInputError(f"perplexity must be between 1 and the total weight {total:g}, got {perplexity}.")


# Bandwidth of a row whose constraint is slack, relative to its nearest sample at a positive distance: exp(−1e6) = 0.
SLACK_BANDWIDTH = 1e-6
# log γ is sought below log max_j D_ij + 20: there a row is uniform to 1e-17, whatever its distances.
_LOG_WIDEST = 20.0
_MAX_STEPS = 200  # bisection alone would end after about 60


@dataclass(frozen=True)
class RowBandwidths:
    """γ_i, log Σ_j w_j exp(−D_ij/γ_i), the scale of the row's distances, and where the entropy constraint is slack.

    ``scale`` is γ_i, or the smallest positive D_ij of a slack row (1 when there is none).
    """

    gamma: Array
    log_partition: Array
    scale: Array
    slack: Array


def row_bandwidths(
    distances: Array, perplexity: float, weights: Array, *, tol: float = 1e-12, workers: Workers = SERIAL
) -> RowBandwidths:
    """Bandwidths γ_i such that the entropy of every row is log ξ within ``tol`` nats."""
    check_perplexity(perplexity, weights)
    args = (distances, weights, np.log(perplexity), tol)
    if too_few_to_compile(len(weights)):
        return _solve_all_rows(*args)
    gamma, log_partition, scale, slack = ordered_sum(workers.run(_solve_rows, chunk_count(len(weights)), *args))
    return RowBandwidths(gamma, log_partition, scale, slack > 0.0)


def _solve_all_rows(distances: Array, weights: Array, target: float, tol: float) -> RowBandwidths:
    """``solve_row`` of all rows at once in NumPy, for few of them."""
    D = distances.astype(np.float64)
    farthest, nearest = D.max(axis=1), np.where(D > 0.0, D, np.inf).min(axis=1)
    at_zero = np.where(D > 0.0, 0.0, weights).sum(axis=1)
    with np.errstate(divide="ignore"):  # −∞ for a row that is at a distance from itself
        log_partition = np.log(at_zero)
    slack = log_partition >= target - 1e-12
    D /= np.where(slack, 1.0, farthest)[:, None]
    # Newton's steps and bisection as in ``_bandwidth``, until no row is open.
    with np.errstate(divide="ignore", invalid="ignore"):  # of slack rows, which are replaced
        low = np.where(slack, 0.0, np.log(nearest / farthest / -MIN_EXPONENT))
    high, theta, open_rows = np.full(len(D), _LOG_WIDEST), np.clip(0.0, low, _LOG_WIDEST), ~slack
    for _ in range(_MAX_STEPS):
        t = np.minimum(D * np.exp(-theta)[:, None], -MIN_EXPONENT)
        p = weights * np.exp(-t)
        partition, mean = p.sum(axis=1), (p * t).sum(axis=1) / p.sum(axis=1)
        log_partition = np.where(open_rows, np.log(partition), log_partition)
        error = np.log(partition) + mean - target
        low, high = np.where(error > 0.0, low, theta), np.where(error > 0.0, theta, high)
        open_rows = open_rows & (np.abs(error) > tol) & (high - low > 1e-15 * (1.0 + np.abs(theta)))
        if not open_rows.any():
            break
        slope = (p * t * t).sum(axis=1) / partition - mean * mean
        step = theta - error / np.where(slope > 0.0, slope, np.nan)  # NaN is outside: bisection
        step = np.where((low < step) & (step < high), step, 0.5 * (low + high))
        theta = np.where(open_rows, step, theta)
    scale = np.where(slack, np.where(nearest < np.inf, nearest, 1.0), np.exp(theta) * farthest)
    return RowBandwidths(np.where(slack, SLACK_BANDWIDTH * scale, scale), log_partition, scale, slack)


@njit(**KERNEL)
def _solve_rows(
    chunk: int, n_chunks: int, distances: Array, weights: Array, log_perplexity: float, tol: float
) -> Array:
    """(γ, log Z, scale, slack) for the rows chunk::n_chunks; the other rows stay zero."""
    n = len(weights)
    out = np.zeros((4, n))
    guess = 0.0
    for i in range(chunk, n, n_chunks):
        # The next row starts where this one ended.
        out[0, i], out[1, i], out[2, i], out[3, i], guess = solve_row(distances[i], weights, log_perplexity, guess, tol)
    return out


@njit(**PART)
def solve_row(
    row: Array, weights: Array, log_perplexity: float, guess: float, tol: float
) -> tuple[float, float, float, float, float]:
    """(γ, log Z, scale, slack) of one row, and log γ relative to its farthest sample, of which ``guess`` is a guess."""
    farthest, nearest, weight_at_zero = _row_extent(row, weights)
    # Slack: the samples at distance zero alone have a perplexity of ξ or more.
    if np.log(weight_at_zero) >= log_perplexity - 1e-12:
        scale = nearest if nearest < np.inf else 1.0  # with all samples at distance zero, any scale is right
        return SLACK_BANDWIDTH * scale, np.log(weight_at_zero), scale, 1.0, guess
    # In units of the farthest sample nothing overflows.
    unit = 1.0 / farthest
    # At `low` not even the nearest sample gets any mass, at `high` the row is uniform.
    low, high = np.log(nearest * unit / -MIN_EXPONENT), _LOG_WIDEST
    log_gamma, log_partition = _bandwidth(row, unit, weights, log_perplexity, guess, low, high, tol)
    gamma = np.exp(log_gamma) * farthest  # back in the unit of the distances
    return gamma, log_partition, gamma, 0.0, log_gamma


@njit(**PART)
def _row_extent(row: Array, weights: Array) -> tuple[float, float, float]:
    """Largest distance, smallest positive distance (inf when there is none), weight at distance zero."""
    farthest, nearest, weight_at_zero = 0.0, np.inf, 0.0
    for j in range(len(row)):
        distance = np.float64(row[j])
        farthest = max(farthest, distance)
        if distance > 0.0:
            nearest = min(nearest, distance)
        else:
            weight_at_zero += weights[j]
    return farthest, nearest, weight_at_zero


@njit(**PART)
def _bandwidth(
    row: Array, unit: float, weights: Array, target: float, guess: float, low: float, high: float, tol: float
) -> tuple[float, float]:
    """Root θ = log γ of H(θ) = target, and log Z there: Newton's steps, bisection where they leave [low, high].

    H increases with θ from below the target at ``low`` to above it at ``high``; dH/dθ is the variance of D/γ under P.
    """
    theta = min(max(guess, low), high)
    log_partition = 0.0
    for _ in range(_MAX_STEPS):
        partition, first, second = _row_moments(row, unit * np.exp(-theta), weights)
        log_partition = np.log(partition)
        mean = first / partition
        error = log_partition + mean - target
        # The root stays between low and high.
        if error > 0.0:
            high = theta
        else:
            low = theta
        if abs(error) <= tol or high - low <= 1e-15 * (1.0 + abs(theta)):
            break
        slope = second / partition - mean * mean
        # Far from the root H is flat: an infinite step is replaced by bisection.
        step = theta - error / slope if slope > 0.0 else np.inf
        theta = step if low < step < high else 0.5 * (low + high)
    return theta, log_partition


@njit(**PART)
def _row_moments(row: Array, inverse_gamma: float, weights: Array) -> tuple[float, float, float]:
    """Σ_j w_j t_j^k exp(−t_j) for k = 0, 1, 2, with t_j = D_ij/γ_i."""
    partition, first, second = 0.0, 0.0, 0.0
    for j in range(len(row)):
        t = min(row[j] * inverse_gamma, -MIN_EXPONENT)  # bounded_exp has a limited range
        p = weights[j] * bounded_exp(-t)
        partition += p
        first += p * t
        second += p * t * t
    return partition, first, second


# The rows' own bandwidths are only a start: a few hundredths of a nat are enough.
START_TOLERANCE = 0.03


@dataclass(frozen=True)
class AffinitySolution:
    """The dual variables γ and μ of P_ij = exp((μ_i + μ_j − 2 D_ij) / (γ_i + γ_j)), and how they were found."""

    gamma: Array
    mu: Array
    residual: float  # largest violation of the optimality conditions; see newton.Residuals
    n_evaluations: int  # passes over the pairs: evaluations of the dual and products with its Hessian
    converged: bool


@dataclass(frozen=True)
class SymmetricAffinity(AffinitySolution):
    """A symmetric entropic affinity P (n, n) in memory, with Σ_j w_j P_ij = 1."""

    matrix: Array


def symmetric_entropic_affinity(
    sq_distances: ArrayLike,
    perplexity: float,
    weights: ArrayLike | None = None,
    *,
    tol: float = 1e-5,
    max_iter: int = 100,
    overwrite: bool = False,
    workers: Workers = SERIAL,
) -> SymmetricAffinity:
    r"""Symmetric entropic affinity of weighted samples (Van Assel et al., 2023).

    minimise Σ_ij w_i w_j P_ij D_ij over P = Pᵀ with Σ_j w_j P_ij = 1 and −Σ_j w_j P_ij log P_ij ≥ log ξ in every row.

    The diagonal is part of the row, so that a sample of weight two is a sample repeated twice. A row whose entropy
    exceeds log ξ at the optimum (next to many duplicates, say) has γ_i = 0: its constraint is slack.

    `sq_distances` D (n, n) are float32 or float64, symmetric, zero on the diagonal, on any scale; `weights` w (n,) are
    counts, ones by default; the perplexity ξ is between 1 and Σ_j w_j. `tol` is the largest violation of the optimality
    conditions to accept; after `max_iter` Newton iterations an ``AffinityConvergenceWarning`` says that it was not met.
    `overwrite` writes P over a writeable, C-contiguous D, so that there is no second n×n array.
    """
    distances = as_distances(sq_distances)
    w = as_weights(weights, len(distances))
    # Start from the bandwidths that the rows would have by themselves.
    rows = row_bandwidths(distances, perplexity, w, tol=START_TOLERANCE, workers=workers)
    # Computing in units of a typical bandwidth makes the solution exactly as good on any scale of the distances.
    unit = float(np.median(rows.scale))
    dual = Dual(w, float(np.log(perplexity)), unit, distances, workers)
    # μ_i = −γ_i log Z_i makes P_ij the geometric mean of the two rows' affinities, weighted by their bandwidths.
    point, residual = solve(dual, rows.gamma / unit, -rows.log_partition, rows.scale / unit, tol, max_iter)
    converged = residual <= tol  # False for NaN
    if not converged:
        warn_about_residual(residual, tol, dual.n_evaluations)
    # An entry of P depends on its own distance only, so that P may be written over D.
    matrix = distances if overwrite and distances.flags.writeable else np.empty_like(distances)
    dual.fill(point, matrix)
    return SymmetricAffinity(unit * point.gamma, unit * point.mu, residual, dual.n_evaluations, converged, matrix)


def warn_about_residual(residual: float, tol: float, n_evaluations: int, advice: str = "") -> None:
    """Warn that Newton's method has not reached its tolerance."""
    warn_user(
        f"The symmetric entropic affinity stopped at a residual of {residual:.1e} (tolerance {tol:.0e}) after "
        f"{n_evaluations} passes over the pairs: samples lack the neighbours that the perplexity asks for.{advice}",
        AffinityConvergenceWarning,
    )

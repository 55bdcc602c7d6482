"""Row-entropic affinity: a Gaussian kernel whose bandwidth γ_i gives every row the same perplexity ξ.

P_ij = exp(−D_ij/γ_i) / Σ_j w_j exp(−D_ij/γ_i), where γ_i makes −Σ_j w_j P_ij log P_ij = log ξ. The diagonal is part of
the row, so that a sample of weight two is a sample repeated twice. A row with a weight of ξ or more at distance zero
cannot have a perplexity as low as ξ: its constraint is slack. Its bandwidths are the start of the symmetric affinity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from distreduce._utils.numba import KERNEL, MIN_EXPONENT, bounded_exp, chunk_count, ordered_sum
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array
from distreduce.affinity._inputs import check_perplexity

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
    gamma, log_partition, scale, slack = ordered_sum(workers.run(_solve_rows, chunk_count(len(weights)), *args))
    return RowBandwidths(gamma, log_partition, scale, slack > 0.0)


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


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
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

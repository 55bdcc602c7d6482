"""The dual of the symmetric entropic affinity: fused loops over the pairs, nothing n×n is ever stored.

With s_ij = γ_i + γ_j, ℓ_ij = (μ_i + μ_j − 2 D_ij) / s_ij and P_ij = exp ℓ_ij, the concave dual is

    g(γ, μ) = Σ_i w_i [μ_i + γ_i (log ξ + 1) − γ_i Σ_j w_j P_ij],

and everything the solver needs is a sum over j of P_ij, P_ij ℓ_ij, or P_ij/s_ij times 1, ℓ_ij, ℓ_ij².

The loops visit every pair from both ends: a row then only has sums to carry, which SIMD code does well. Visiting half
of the pairs and adding to both ends saves half of the exponentials and was measured no faster (2.3 ns per pair, both).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from distreduce.compiled import (
    ELEMENTWISE,
    KERNEL,
    MAX_EXPONENT,
    MIN_EXPONENT,
    Array,
    bounded_exp,
    chunk_count,
    lowest_exponent,
    ordered_sum,
)
from distreduce.parallel import Workers


@dataclass(frozen=True)
class DualPoint:
    """The dual at (γ, μ), γ and μ in units of the problem's scale.

    ``mass`` is r_i = Σ_j w_j P_ij, ``entropy`` is H_i = −Σ_j w_j P_ij log P_ij, ``value`` is −g (to be minimised).
    ``curvature`` holds the 2×2 diagonal blocks of the Hessian of −g as rows (μμ, μγ, γγ).
    """

    gamma: Array
    mu: Array
    mass: Array
    entropy: Array
    curvature: Array
    value: float


@dataclass
class Dual:
    """The data of one problem, and a count of the passes made over its pairs."""

    distances: Array
    weights: Array
    log_perplexity: float
    scale: float
    workers: Workers
    n_evaluations: int = field(default=0)

    def evaluate(self, gamma: Array, mu: Array) -> DualPoint:
        """One pass over the pairs: value, row sums and curvature at (γ, μ)."""
        self.n_evaluations += 1
        n = len(mu)
        parts = self.workers.run(dual_sums, chunk_count(n), self.distances, 2.0 / self.scale, self.weights, gamma, mu)
        mass, plogp, *blocks = ordered_sum(parts)
        w = self.weights
        linear = float(w @ (mu + gamma * (self.log_perplexity + 1.0)))
        return DualPoint(gamma, mu, mass, -plogp, w * np.array(blocks), float(w @ (gamma * mass)) - linear)

    def hessian_product(self, point: DualPoint, direction: Array) -> Array:
        """Hessian of −g at ``point`` times ``direction``, a (2, n) array of changes of μ and γ. One pass."""
        self.n_evaluations += 1
        args = (self.distances, 2.0 / self.scale, self.weights, point.gamma, point.mu, direction[0], direction[1])
        return self.weights * ordered_sum(self.workers.run(hessian_sums, chunk_count(len(point.mu)), *args))

    def fill(self, point: DualPoint, out: Array) -> None:
        """Write P into ``out``, which may be the array of distances itself."""
        args = (self.distances, 2.0 / self.scale, point.gamma, point.mu, lowest_exponent(out), out)
        self.workers.run(fill_affinity, chunk_count(len(point.mu)), *args)


@njit(**KERNEL)
def dual_sums(
    chunk: int, n_chunks: int, distances: Array, factor: float, weights: Array, gamma: Array, mu: Array
) -> Array:
    """Σ_j w_j × (P, Pℓ, P/s, −Pℓ/s, Pℓ²/s)_ij for the rows i of chunk::n_chunks; the other rows stay zero."""
    n = len(mu)
    sums = np.zeros((5, n))
    for i in range(chunk, n, n_chunks):
        row, gamma_i, mu_i = distances[i], gamma[i], mu[i]
        mass, plogp, mu_mu, mu_gamma, gamma_gamma = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            inverse = 1.0 / (gamma_i + gamma[j])
            ell = min(max((mu_i + mu[j] - factor * row[j]) * inverse, MIN_EXPONENT), MAX_EXPONENT)
            p = weights[j] * bounded_exp(ell)
            q = p * inverse
            mass += p
            plogp += p * ell
            mu_mu += q
            mu_gamma -= q * ell
            gamma_gamma += q * ell * ell
        # A change of x_i enters x_i + x_i twice: the Hessian's diagonal block counts the pair (i, i) twice.
        ell = min(max((mu_i - 0.5 * factor * row[i]) / gamma_i, MIN_EXPONENT), MAX_EXPONENT)
        q = weights[i] * bounded_exp(ell) * 0.5 / gamma_i
        sums[0, i], sums[1, i] = mass, plogp
        sums[2, i], sums[3, i], sums[4, i] = mu_mu + q, mu_gamma - q * ell, gamma_gamma + q * ell * ell
    return sums


@njit(**KERNEL)
def hessian_sums(
    chunk: int,
    n_chunks: int,
    distances: Array,
    factor: float,
    weights: Array,
    gamma: Array,
    mu: Array,
    d_mu: Array,
    d_gamma: Array,
) -> Array:
    """Σ_j w_j P_ij/s_ij (1, −ℓ_ij) (dμ_i + dμ_j − ℓ_ij (dγ_i + dγ_j)) for the rows i of chunk::n_chunks."""
    n = len(mu)
    sums = np.zeros((2, n))
    for i in range(chunk, n, n_chunks):
        row, gamma_i, mu_i, d_mu_i, d_gamma_i = distances[i], gamma[i], mu[i], d_mu[i], d_gamma[i]
        along_mu, along_gamma = 0.0, 0.0
        for j in range(n):
            inverse = 1.0 / (gamma_i + gamma[j])
            ell = min(max((mu_i + mu[j] - factor * row[j]) * inverse, MIN_EXPONENT), MAX_EXPONENT)
            change = d_mu_i + d_mu[j] - ell * (d_gamma_i + d_gamma[j])
            change *= weights[j] * bounded_exp(ell) * inverse
            along_mu += change
            along_gamma -= ell * change
        sums[0, i], sums[1, i] = along_mu, along_gamma
    return sums


@njit(**ELEMENTWISE)
def fill_affinity(
    chunk: int, n_chunks: int, distances: Array, factor: float, gamma: Array, mu: Array, lowest: float, out: Array
) -> None:
    """Write P_ij for the rows i of chunk::n_chunks; an entry needs no other distance than its own: ``out`` may be D."""
    n = len(mu)
    for i in range(chunk, n, n_chunks):
        row, out_row, gamma_i, mu_i = distances[i], out[i], gamma[i], mu[i]
        for j in range(n):
            ell = ((mu_i + mu[j]) - factor * row[j]) / (gamma_i + gamma[j])
            p = bounded_exp(min(max(ell, MIN_EXPONENT), MAX_EXPONENT))
            out_row[j] = p if ell > lowest else 0.0

"""The dual of the symmetric entropic affinity: fused loops over the pairs that store nothing n×n.

With s_ij = γ_i + γ_j, ℓ_ij = (μ_i + μ_j − 2 D_ij) / s_ij and P_ij = exp ℓ_ij, the concave dual is

    g(γ, μ) = Σ_i w_i [μ_i + γ_i (log ξ + 1) − γ_i Σ_j w_j P_ij],

and everything the solver needs is a sum over j of P_ij, P_ij ℓ_ij, or P_ij/s_ij times 1, ℓ_ij, ℓ_ij².

The loops visit every pair from both ends: a row then only accumulates sums, which SIMD code does well. Visiting half of
the pairs and adding to both ends saves half of the exponentials but was no faster (2.3 ns per pair, both).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from distreduce._utils.threads import (
    ELEMENTWISE,
    KERNEL,
    MAX_EXPONENT,
    MIN_EXPONENT,
    PART,
    Workers,
    bounded_exp,
    chunk_count,
    lowest_exponent,
    ordered_sum,
    too_few_to_compile,
)
from distreduce._utils.typing import Array


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
class ConcaveDual(ABC):
    """The dual of one problem, wherever its pairs are; counts the passes over them."""

    weights: Array
    log_perplexity: float
    scale: float  # of the distances
    n_evaluations: int = field(default=0, init=False)

    def evaluate(self, gamma: Array, mu: Array) -> DualPoint:
        """Value, row sums and curvature at (γ, μ). One pass."""
        self.n_evaluations += 1
        mass, plogp, *blocks = self._row_sums(gamma, mu)
        w = self.weights
        linear = float(w @ (mu + gamma * (self.log_perplexity + 1.0)))
        # The sums run over j only: the Hessian also has the weight of the row itself.
        return DualPoint(gamma, mu, mass, -plogp, w * np.array(blocks), float(w @ (gamma * mass)) - linear)

    def hessian_product(self, point: DualPoint, direction: Array) -> Array:
        """Hessian of −g at ``point`` times ``direction``, a (2, n) array of changes of μ and γ. One pass."""
        self.n_evaluations += 1
        return self.weights * self._hessian_sums(point, direction)

    @property
    def factor(self) -> float:
        """Distances in units of the scale: ℓ_ij = (μ_i + μ_j − factor · D_ij) / s_ij."""
        return 2.0 / self.scale

    @abstractmethod
    def _row_sums(self, gamma: Array, mu: Array) -> Array:
        """``row_sums`` of all rows, (5, n)."""

    @abstractmethod
    def _hessian_sums(self, point: DualPoint, direction: Array) -> Array:
        """``row_hessian`` of all rows, (2, n)."""


@dataclass
class Dual(ConcaveDual):
    """The dual with all distances (n, n) in memory."""

    distances: Array
    workers: Workers

    def _row_sums(self, gamma: Array, mu: Array) -> Array:
        if too_few_to_compile(len(mu)):
            inverse, ell = self._pairs(gamma, mu)
            p = self.weights * np.exp(ell)
            q = p * inverse
            blocks = np.array([q, -q * ell, q * ell * ell])
            # The pair (i, i) counts twice, as in ``row_sums``.
            sums = blocks.sum(axis=2) + np.diagonal(blocks, axis1=1, axis2=2)
            return np.concatenate([[p.sum(axis=1), (p * ell).sum(axis=1)], sums])
        args = (self.distances, self.factor, self.weights, gamma, mu)
        return ordered_sum(self.workers.run(dual_sums, chunk_count(len(mu)), *args))

    def _hessian_sums(self, point: DualPoint, direction: Array) -> Array:
        if too_few_to_compile(len(point.mu)):
            inverse, ell = self._pairs(point.gamma, point.mu)
            d_mu, d_gamma = direction
            change = (d_mu[:, None] + d_mu) - ell * (d_gamma[:, None] + d_gamma)
            change *= self.weights * np.exp(ell) * inverse
            return np.array([change.sum(axis=1), -(ell * change).sum(axis=1)])
        args = (self.distances, self.factor, self.weights, point.gamma, point.mu, direction[0], direction[1])
        return ordered_sum(self.workers.run(hessian_sums, chunk_count(len(point.mu)), *args))

    def fill(self, point: DualPoint, out: Array) -> None:
        """Write P into ``out``, which may be the array of distances itself."""
        if too_few_to_compile(len(point.mu)):
            ell = self._pairs(point.gamma, point.mu)[1]
            out[:] = np.where(ell > lowest_exponent(out), np.exp(ell), 0.0)
            return
        # The threshold depends on the type of `out`: float32 underflows earlier.
        args = (self.distances, self.factor, point.gamma, point.mu, lowest_exponent(out), out)
        self.workers.run(fill_affinity, chunk_count(len(point.mu)), *args)

    def _pairs(self, gamma: Array, mu: Array) -> tuple[Array, Array]:
        """1/s_ij and ℓ_ij of all pairs, for few rows."""
        inverse = 1.0 / (gamma[:, None] + gamma)
        ell = ((mu[:, None] + mu) - np.float64(self.factor) * self.distances) * inverse  # in float64, whatever D is
        return inverse, np.clip(ell, MIN_EXPONENT, MAX_EXPONENT)


@njit(**KERNEL)
def dual_sums(
    chunk: int, n_chunks: int, distances: Array, factor: float, weights: Array, gamma: Array, mu: Array
) -> Array:
    """``row_sums`` of the rows i of chunk::n_chunks; the other rows stay zero."""
    n = len(mu)
    sums = np.zeros((5, n))
    for i in range(chunk, n, n_chunks):
        row_sums(distances[i], distances[i, i], factor, weights[i], gamma[i], mu[i], weights, gamma, mu, sums[:, i])
    return sums


@njit(**PART)
def row_sums(row, own, factor, w_i, gamma_i, mu_i, weights, gamma, mu, out):  # type: ignore[no-untyped-def]
    """Σ_j w_j × (P, Pℓ, P/s, −Pℓ/s, Pℓ²/s)_ij of one row of distances, ``own`` that of i to itself."""
    # Five sums in one pass: all of them need the exponential, which is the expensive part.
    mass, plogp, mu_mu, mu_gamma, gamma_gamma = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(row)):
        inverse = 1.0 / (gamma_i + gamma[j])  # the only division per pair
        ell = min(max((mu_i + mu[j] - factor * row[j]) * inverse, MIN_EXPONENT), MAX_EXPONENT)
        p = weights[j] * bounded_exp(ell)
        q = p * inverse
        mass += p
        plogp += p * ell
        mu_mu += q
        mu_gamma -= q * ell
        gamma_gamma += q * ell * ell
    # A change of x_i enters x_i + x_i twice: the Hessian's diagonal block counts the pair (i, i) twice.
    ell = min(max((mu_i - 0.5 * factor * own) / gamma_i, MIN_EXPONENT), MAX_EXPONENT)
    q = w_i * bounded_exp(ell) * 0.5 / gamma_i  # s_ii = 2 γ_i
    out[0], out[1] = mass, plogp
    out[2], out[3], out[4] = mu_mu + q, mu_gamma - q * ell, gamma_gamma + q * ell * ell


@njit(**KERNEL)
def hessian_sums(chunk, n_chunks, distances, factor, weights, gamma, mu, d_mu, d_gamma):  # type: ignore[no-untyped-def]
    """``row_hessian`` of the rows i of chunk::n_chunks; the other rows stay zero."""
    n = len(mu)
    sums = np.zeros((2, n))
    for i in range(chunk, n, n_chunks):
        sums[0, i], sums[1, i] = row_hessian(
            distances[i], factor, gamma[i], mu[i], d_mu[i], d_gamma[i], weights, gamma, mu, d_mu, d_gamma
        )
    return sums


@njit(**PART)
def row_hessian(  # type: ignore[no-untyped-def]
    row, factor, gamma_i, mu_i, d_mu_i, d_gamma_i, weights, gamma, mu, d_mu, d_gamma
):
    """Σ_j w_j P_ij/s_ij (1, −ℓ_ij) (dμ_i + dμ_j − ℓ_ij (dγ_i + dγ_j)) of one row of distances."""
    along_mu, along_gamma = 0.0, 0.0
    for j in range(len(row)):
        inverse = 1.0 / (gamma_i + gamma[j])
        ell = min(max((mu_i + mu[j] - factor * row[j]) * inverse, MIN_EXPONENT), MAX_EXPONENT)
        # s_ij dℓ_ij, the change of the exponent times its width.
        change = d_mu_i + d_mu[j] - ell * (d_gamma_i + d_gamma[j])
        change *= weights[j] * bounded_exp(ell) * inverse
        along_mu += change
        along_gamma -= ell * change
    return along_mu, along_gamma


@njit(**ELEMENTWISE)
def fill_affinity(
    chunk: int, n_chunks: int, distances: Array, factor: float, gamma: Array, mu: Array, lowest: float, out: Array
) -> None:
    """``fill_row`` of the rows i of chunk::n_chunks; an entry needs its own distance only: ``out`` may be D."""
    n = len(mu)
    for i in range(chunk, n, n_chunks):
        fill_row(distances[i], factor, gamma[i], mu[i], gamma, mu, lowest, out[i])


@njit(**ELEMENTWISE, forceinline=True)
def fill_row(
    row: Array, factor: float, gamma_i: float, mu_i: float, gamma: Array, mu: Array, lowest: float, out: Array
) -> None:
    """Write P_ij of one row of distances."""
    for j in range(len(row)):
        # The brackets and the true division give the entries (i, j) and (j, i) the same bits.
        ell = ((mu_i + mu[j]) - factor * row[j]) / (gamma_i + gamma[j])
        p = bounded_exp(min(max(ell, MIN_EXPONENT), MAX_EXPONENT))
        out[j] = p if ell > lowest else 0.0  # denormal numbers would slow down every later product

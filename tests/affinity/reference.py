"""The formulas of the affinities in plain NumPy, to test the compiled loops against."""

from __future__ import annotations

import numpy as np

from distreduce._utils.typing import Array


def squared_distances(points: Array) -> Array:
    """D_ij = |x_i − x_j|²."""
    return np.asarray(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1))


def entropic_affinity(distances: Array, gamma: Array, weights: Array) -> Array:
    """P_ij = exp(−D_ij/γ_i) / Σ_j w_j exp(−D_ij/γ_i)."""
    kernel = np.exp(-distances / gamma[:, None])
    return np.asarray(kernel / (kernel @ weights)[:, None])


def row_entropy(affinity: Array, weights: Array) -> Array:
    """H_i = −Σ_j w_j P_ij log P_ij, with 0 log 0 = 0."""
    return np.asarray(-(affinity * np.log(np.where(affinity > 0.0, affinity, 1.0))) @ weights)


def symmetric_affinity(distances: Array, gamma: Array, mu: Array) -> Array:
    """P_ij = exp((μ_i + μ_j − 2 D_ij) / (γ_i + γ_j))."""
    return np.asarray(np.exp((mu[:, None] + mu - 2.0 * distances) / (gamma[:, None] + gamma)))


def dual_value(distances: Array, gamma: Array, mu: Array, weights: Array, perplexity: float) -> float:
    """g(γ, μ) = Σ_i w_i [μ_i + γ_i (log ξ + 1) − γ_i Σ_j w_j P_ij]."""
    mass = symmetric_affinity(distances, gamma, mu) @ weights
    return float(weights @ (mu + gamma * (np.log(perplexity) + 1.0) - gamma * mass))


def dual_gradient(distances: Array, gamma: Array, mu: Array, weights: Array, perplexity: float) -> Array:
    """∂g/∂μ_i = w_i (1 − r_i) and ∂g/∂γ_i = w_i (log ξ + 1 − H_i − r_i), as rows."""
    affinity = symmetric_affinity(distances, gamma, mu)
    mass, entropy = affinity @ weights, row_entropy(affinity, weights)
    return weights * np.array([1.0 - mass, np.log(perplexity) + 1.0 - entropy - mass])


def dual_hessian(distances: Array, gamma: Array, mu: Array, weights: Array) -> Array:
    """Hessian of −g in (μ, γ), of shape (2n, 2n).

    Every pair adds w_i w_j P_ij/s_ij (1, −ℓ_ij)(1, −ℓ_ij)ᵀ, half of it per order of the pair, acting on x_i + x_j.
    """
    width = gamma[:, None] + gamma
    ell = (mu[:, None] + mu - 2.0 * distances) / width
    pair = weights[:, None] * weights * np.exp(ell) / width
    blocks = [pair, -pair * ell, pair * ell**2]
    mu_mu, mu_gamma, gamma_gamma = (block + np.diag(block.sum(axis=1)) for block in blocks)
    return np.block([[mu_mu, mu_gamma], [mu_gamma, gamma_gamma]])


def kkt_residual(affinity: Array, gamma: Array, weights: Array, perplexity: float, scale: Array) -> float:
    """Largest of |r_i − 1|, log ξ − H_i and min(γ_i / scale_i, H_i − log ξ)."""
    slack = row_entropy(affinity, weights) - np.log(perplexity)
    violation = np.maximum(-slack, np.minimum(gamma / scale, slack))
    return float(np.maximum(np.abs(affinity @ weights - 1.0), violation).max())


def student_affinity(embedding: Array, weights: Array) -> Array:
    """C̄_kl = ω_kl / Σ_kl r_k r_l ω_kl with ω_kl = 1 / (1 + |z_k − z_l|²)."""
    kernel = 1.0 / (1.0 + squared_distances(embedding))
    return np.asarray(kernel / (weights @ kernel @ weights))

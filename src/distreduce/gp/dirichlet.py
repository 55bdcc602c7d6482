r"""The Dirichlet-likelihood GP whose classes share one kernel: one factorisation serves every class.

Milios et al. (2018) turn labels into regression targets with known noise. For class c, with α = α_ε + 1[y_i = c]:

    s_ic = log(1/α + 1),    ỹ_ic = log α − s_ic / 2

so the noise takes two values only, s_own where y_i = c and s_other elsewhere. With A = K + (s_other + σ²) I,
δ = s_other − s_own and E_c the columns of the identity that pick the members of c,

    Σ_c = K + diag(s_c) + σ²I = A − δ E_c E_cᵀ
    Σ_c⁻¹ = A⁻¹ + δ A⁻¹ E_c M_c⁻¹ E_cᵀ A⁻¹,    M_c = I − δ E_cᵀ A⁻¹ E_c,    |Σ_c| = |A| |M_c|

M_c is well conditioned: its eigenvalues lie between s_own / s_other and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack, solve_triangular

from distreduce.gp.exact import factorise
from distreduce.gp.hyperparameters import Hyperparameters
from distreduce.kernels import RBF

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DirichletTargets:
    """Labels as regression targets: ỹ (n, C), the rows of each class, and the two noise variances."""

    values: Array
    members: tuple[NDArray[np.intp], ...]
    own_noise: float
    other_noise: float

    @classmethod
    def of(cls, labels: NDArray[np.intp], n_classes: int, alpha_epsilon: float) -> DirichletTargets:
        """From labels 0 … C − 1: s = log(1/α + 1), ỹ = log α − s/2 with α = α_ε + 1[y = c]."""
        alphas = alpha_epsilon + 1.0, alpha_epsilon
        own_noise, other_noise = (float(np.log1p(1.0 / alpha)) for alpha in alphas)
        high, low = np.log(alphas[0]) - own_noise / 2, np.log(alphas[1]) - other_noise / 2
        values = np.where(labels[:, None] == np.arange(n_classes), high, low)
        members = tuple(np.flatnonzero(labels == c) for c in range(n_classes))
        return cls(values, members, own_noise, other_noise)

    @property
    def gap(self) -> float:
        """δ = s_other − s_own."""
        return self.other_noise - self.own_noise


@dataclass(frozen=True)
class DirichletPosterior:
    """Everything of Σ_1 … Σ_C that a prediction needs: A⁻¹, the factors of M_c, and the weights Σ_c⁻¹ r_c (n, C)."""

    targets: DirichletTargets
    inverse: Array
    blocks: tuple[Array, ...]
    weights: Array
    log_determinant: float

    def solve(self, values: Array, c: int) -> Array:
        """Σ_c⁻¹ v = b + δ A⁻¹ E_c M_c⁻¹ E_cᵀ b with b = A⁻¹ v."""
        rows, base = self.targets.members[c], self.inverse @ values
        return np.asarray(
            base + self.targets.gap * self.inverse[:, rows] @ cho_solve((self.blocks[c], True), base[rows])
        )

    def moments(self, cross: Array, prior: float) -> tuple[Array, Array]:
        """Posterior mean less prior mean, and variance, of each latent function at new inputs: two (t, C) arrays.

        k*ᵀ Σ_c⁻¹ r_c,    k** − k*ᵀ A⁻¹ k* − δ |M_c^{-1/2} E_cᵀ A⁻¹ k*|²
        """
        solved = self.inverse @ cross.T
        shared = prior - np.einsum("ij,ji->i", cross, solved)
        gains = [
            np.square(solve_triangular(block, solved[rows], lower=True, check_finite=False)).sum(axis=0)
            for rows, block in zip(self.targets.members, self.blocks, strict=True)
        ]
        variance = shared[:, None] - self.targets.gap * np.stack(gains, axis=1)
        return cross @ self.weights, np.maximum(variance, 0.0)


def condition(covariance: Array, residuals: Array, targets: DirichletTargets) -> DirichletPosterior:
    """Factorise Σ_1 … Σ_C at the cost of one n × n matrix, and solve for the residuals r = ỹ − m (n, C)."""
    factor = factorise(covariance, targets.other_noise)
    inverse, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    base = inverse @ residuals
    blocks, correction = [], np.zeros_like(base)
    for c, rows in enumerate(targets.members):
        inner = -targets.gap * inverse[np.ix_(rows, rows)]
        blocks.append(factorise(inner, 1.0) if len(rows) else np.empty((0, 0)))
        correction[rows, c] = cho_solve((blocks[-1], True), base[rows, c]) if len(rows) else 0.0
    log_determinant = len(blocks) * _log_determinant(factor) + sum(map(_log_determinant, blocks))
    weights = base + targets.gap * inverse @ correction
    return DirichletPosterior(targets, inverse, tuple(blocks), weights, log_determinant)


def covariance_gradient(posterior: DirichletPosterior) -> Array:
    """Gradient of −Σ_c log N(r_c; 0, Σ_c) in K: ½ [ C A⁻¹ + δ A⁻¹ (Σ_c E_c M_c⁻¹ E_cᵀ) A⁻¹ − Σ_c a_c a_cᵀ ]."""
    inverse, weights = posterior.inverse, posterior.weights
    half = np.empty_like(inverse)  # the rows of all classes, each whitened by its own block
    for rows, block in zip(posterior.targets.members, posterior.blocks, strict=True):
        half[rows] = solve_triangular(block, inverse[rows], lower=True, check_finite=False)
    slope = len(posterior.blocks) * inverse - weights @ weights.T
    return np.asarray(0.5 * (slope + posterior.targets.gap * half.T @ half))


class NegativeLogLikelihood:
    r"""−Σ_c log N(ỹ_c; m_c 1, Σ_c) less its constant, in (log l_1 … log l_d, log s, log σ²), and its gradient.

    The prior mean of each class is the one that fits best, :math:`m_c = 1^\top\Sigma_c^{-1}\tilde y_c /
    1^\top\Sigma_c^{-1}1`; being a minimum it has no part in the gradient.
    """

    def __init__(self, inputs: Array, targets: DirichletTargets) -> None:
        self.inputs, self.targets = inputs, targets

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        found = Hyperparameters.from_logarithms(parameters)
        scaled = self.inputs / found.length_scales
        K = found.signal * RBF(1.0)(scaled)
        posterior, means = fit_means(K, found.noise, self.targets)
        residuals = self.targets.values - means
        value = 0.5 * (float((residuals * posterior.weights).sum()) + posterior.log_determinant)
        G = covariance_gradient(posterior)
        M = G * K
        by_scale = 2 * (M.sum(axis=1) @ scaled**2 - np.einsum("if,if->f", scaled, M @ scaled))
        return value, np.r_[by_scale, M.sum(), found.noise * G.trace()]


def fit_means(K: Array, noise: float, targets: DirichletTargets) -> tuple[DirichletPosterior, Array]:
    """Posterior with the prior means (C,) that fit best."""
    covariance = K + noise * np.eye(len(K))
    first = condition(covariance, targets.values, targets)
    ones = np.ones(len(K))
    scales = np.stack([first.solve(ones, c) for c in range(len(first.blocks))], axis=1)
    means = first.weights.sum(axis=0) / scales.sum(axis=0)
    weights = first.weights - scales * means
    return DirichletPosterior(targets, first.inverse, first.blocks, weights, first.log_determinant), means


def expected_probabilities(mean: Array, variance: Array, draws: Array) -> Array:
    """Class probabilities E[softmax(f)], f ~ N(mean, diag(variance)), over the standard normal draws (S, C).

    Every sample shares the draws, so its probabilities do not depend on the samples it is given with.
    """
    latent = mean + np.sqrt(variance) * draws[:, None, :]
    latent -= latent.max(axis=-1, keepdims=True)
    np.exp(latent, out=latent)
    latent /= latent.sum(axis=-1, keepdims=True)
    return np.asarray(latent.mean(axis=0))


def _log_determinant(factor: Array) -> float:
    return 2.0 * float(np.log(factor.diagonal()).sum())

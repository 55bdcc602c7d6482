"""The Dirichlet-likelihood GP whose classes share one kernel: one factorisation serves every class.

Milios et al. (2018) turn labels into regression targets with known noise. For class c, with α = α_ε + 1[y_i = c]:

    s_ic = log(1/α + 1),    ỹ_ic = log α − s_ic / 2

so the noise takes two values only, s_own where y_i = c and s_other elsewhere. With A = K + s_other I,
δ = s_other − s_own and E_c the columns of the identity that pick the members of c,

    Σ_c = K + diag(s_c) = A − δ E_c E_cᵀ
    Σ_c⁻¹ = A⁻¹ + δ A⁻¹ E_c M_c⁻¹ E_cᵀ A⁻¹,    M_c = I − δ E_cᵀ A⁻¹ E_c,    |Σ_c| = |A| |M_c|

M_c is well conditioned: its eigenvalues lie between s_own / s_other and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor


@dataclass(frozen=True)
class DirichletTargets:
    """Labels as regression targets: ỹ (n, C), the rows of each class, and the two noise variances."""

    values: Tensor
    members: tuple[Tensor, ...]
    own_noise: float
    other_noise: float

    @property
    def gap(self) -> float:
        """δ = s_other − s_own."""
        return self.other_noise - self.own_noise


def dirichlet_targets(labels: Tensor, n_classes: int, alpha_epsilon: float) -> DirichletTargets:
    """Turn labels 0 … C − 1 into targets and noise: s = log(1/α + 1), ỹ = log α − s/2 with α = α_ε + 1[y = c]."""
    own = torch.nn.functional.one_hot(labels, n_classes).bool()
    alphas = alpha_epsilon + 1.0, alpha_epsilon
    own_noise, other_noise = (math.log1p(1.0 / alpha) for alpha in alphas)
    high, low = math.log(alphas[0]) - own_noise / 2, math.log(alphas[1]) - other_noise / 2
    values = torch.full(own.shape, low, dtype=torch.float64).masked_fill(own, high)
    members = tuple(torch.nonzero(labels == c)[:, 0] for c in range(n_classes))
    return DirichletTargets(values, members, own_noise, other_noise)


@dataclass(frozen=True)
class DirichletPosterior:
    """Everything of Σ_1 … Σ_C that a prediction needs: A⁻¹, the factors of M_c, and the weights Σ_c⁻¹ (ỹ_c − m_c)."""

    targets: DirichletTargets
    inverse: Tensor
    log_determinant: Tensor
    blocks: tuple[Tensor, ...]
    weights: Tensor

    def deviation_and_variance(self, cross: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean less prior mean, and variance, of each latent function: two (t, C) arrays.

            k*ᵀ Σ_c⁻¹ (ỹ_c − m_c),    k** − k*ᵀ A⁻¹ k* − δ |M_c^{-1/2} E_cᵀ A⁻¹ k*|²

        Parameters
        ----------
        cross : (t, n) tensor
            Covariance k* of new and training inputs.
        diagonal : (t,) tensor
            Prior variance k** of the new inputs.
        """
        solved = self.inverse @ cross.mT
        shared = diagonal - (cross.mT * solved).sum(0)
        gains = [
            torch.linalg.solve_triangular(block, solved[rows], upper=False).square().sum(0)
            for rows, block in zip(self.targets.members, self.blocks, strict=True)
        ]
        variance = shared[:, None] - self.targets.gap * torch.stack(gains, dim=1)
        return cross @ self.weights, variance.clamp_min(0.0)


def condition(covariance: Tensor, residuals: Tensor, targets: DirichletTargets) -> DirichletPosterior:
    """Factorise Σ_1 … Σ_C at the cost of one n × n matrix, and solve for the residuals ỹ − m (n, C).

    With b = A⁻¹ r_c:  Σ_c⁻¹ r_c = b + δ A⁻¹ E_c M_c⁻¹ E_cᵀ b.
    """
    identity = torch.eye(len(covariance), dtype=covariance.dtype)
    factor = psd_safe_cholesky(covariance + targets.other_noise * identity)
    inverse = torch.cholesky_inverse(factor)
    base = inverse @ residuals
    blocks, correction = [], torch.zeros_like(residuals)
    for c, rows in enumerate(targets.members):
        inner = torch.eye(len(rows), dtype=covariance.dtype) - targets.gap * inverse[rows[:, None], rows]
        blocks.append(psd_safe_cholesky(inner))
        correction[rows, c] = torch.cholesky_solve(base[rows, c, None], blocks[-1])[:, 0]
    log_determinant = len(blocks) * _log_determinant(factor) + sum(map(_log_determinant, blocks))
    weights = base + targets.gap * inverse @ correction
    return DirichletPosterior(targets, inverse, log_determinant, tuple(blocks), weights)


def log_marginal_likelihood(covariance: Tensor, residuals: Tensor, targets: DirichletTargets) -> Tensor:
    """Log marginal likelihood of all classes, r_c = ỹ_c − m_c; differentiable in both tensors.

        Σ_c log N(r_c; 0, Σ_c) = −½ Σ_c [ r_cᵀ Σ_c⁻¹ r_c + log|A| + log|M_c| + n log 2π ]

    Parameters
    ----------
    covariance : (n, n) tensor
        K, with any noise beyond the Dirichlet likelihood's own already on its diagonal.
    residuals : (n, C) tensor
        Targets less the prior means.
    targets : DirichletTargets
        The classes and their noise.
    """
    value: Tensor = _LogMarginalLikelihood.apply(covariance, residuals, targets)  # type: ignore[no-untyped-call]
    return value


class _LogMarginalLikelihood(torch.autograd.Function):
    """The value with its gradient in closed form, several times cheaper than through the factorisation.

    ∂/∂K = ½ [ Σ_c a_c a_cᵀ − C A⁻¹ − δ A⁻¹ (Σ_c E_c M_c⁻¹ E_cᵀ) A⁻¹ ],    ∂/∂r_c = −a_c = −Σ_c⁻¹ r_c
    """

    @staticmethod
    def forward(ctx: Any, covariance: Tensor, residuals: Tensor, targets: DirichletTargets) -> Tensor:
        posterior = condition(covariance, residuals, targets)
        ctx.posterior = posterior
        quadratic = (residuals * posterior.weights).sum()
        return -0.5 * (quadratic + posterior.log_determinant + residuals.numel() * math.log(2 * math.pi))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (outer,), posterior = gradients, ctx.posterior
        weights, inverse = posterior.weights, posterior.inverse
        slope = weights @ weights.mT - len(posterior.blocks) * inverse
        for rows, block in zip(posterior.targets.members, posterior.blocks, strict=True):
            half = torch.linalg.solve_triangular(block, inverse[rows], upper=False)
            slope -= posterior.targets.gap * (half.mT @ half)
        return outer * slope / 2, -outer * weights, None


def expected_probabilities(mean: Tensor, variance: Tensor, draws: Tensor) -> Tensor:
    """Class probabilities E[softmax(f)], f ~ N(mean, diag(variance)), over the standard normal draws (S, C).

    Every sample shares the draws, so its probabilities do not depend on the samples it is given with.
    """
    latent = mean + variance.sqrt() * draws[:, None, :]
    return torch.softmax(latent, dim=-1).mean(0)


def _log_determinant(factor: Tensor) -> Tensor:
    return 2.0 * factor.diagonal().log().sum()

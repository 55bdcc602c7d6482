r"""The Dirichlet-likelihood GP whose classes share one kernel: one factorisation serves every class.

Milios et al. [1]_ turn labels into regression targets with known noise. For class c, with α = α_ε + 1[y_i = c]:

    s_ic = log(1/α + 1),    ỹ_ic = log α − s_ic / 2

so the noise takes two values only, s_own where y_i = c and s_other elsewhere. With A = K + (s_other + σ²) I,
δ = s_other − s_own and E_c the columns of the identity that pick the members of c,

    Σ_c = K + diag(s_c) + σ²I = A − δ E_c E_cᵀ
    Σ_c⁻¹ = A⁻¹ + δ A⁻¹ E_c M_c⁻¹ E_cᵀ A⁻¹,    M_c = I − δ E_cᵀ A⁻¹ E_c,    |Σ_c| = |A| |M_c|

M_c is well conditioned: its eigenvalues lie between s_own / s_other and 1.

References
----------
.. [1] Milios et al. (2018). Dirichlet-based Gaussian processes for large-scale calibrated classification. NeurIPS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_solve

from distreduce._utils.linalg import inverse_from_factor
from distreduce._utils.typing import Array
from distreduce.gp._exact import factorise
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.kernels import RBF
from distreduce.mapping.relevance import length_scale_gradient


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

    @property
    def represented(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Number and rows of each class that has members: a subset of the samples may lack some classes."""
        return ((c, rows) for c, rows in enumerate(self.members) if len(rows))


@dataclass(frozen=True)
class DirichletPosterior:
    """The parts of Σ_1 … Σ_C that predictions need: A⁻¹, the factors of M_c, and the weights Σ_c⁻¹ r_c (n, C)."""

    targets: DirichletTargets
    inverse: Array
    blocks: tuple[Array, ...]
    weights: Array
    log_determinant: float

    def moments(self, cross: Array, prior: float) -> tuple[Array, Array]:
        """Posterior mean less prior mean, and variance, of each latent function at new inputs: two (t, C) arrays.

        k*ᵀ Σ_c⁻¹ r_c,    k** − k*ᵀ A⁻¹ k* − δ |M_c^{-1/2} E_cᵀ A⁻¹ k*|²
        """
        # The part of the variance that A explains is common to all classes.
        solved = cross @ self.inverse
        variance = np.repeat((prior - np.einsum("ij,ij->i", cross, solved))[:, None], len(self.blocks), axis=1)
        for c, rows in self.targets.represented:
            # The members of c have less noise than A assumes, so they explain more.
            gain = _whiten(self.blocks[c], solved[:, rows])
            variance[:, c] -= self.targets.gap * np.einsum("ij,ij->i", gain, gain)
        return cross @ self.weights, np.maximum(variance, 0.0)  # rounding can go below 0


def condition(
    covariance: Array, residuals: Array, targets: DirichletTargets, extra_noise: float = 0.0
) -> DirichletPosterior:
    """Factorise Σ_1 … Σ_C at the cost of one n × n matrix, and solve for the residuals r = ỹ − m (n, C).

    The noise σ² may already be on the diagonal of `covariance`, or be given as `extra_noise`.
    """
    # A is common to all classes: the only factorisation of size n.
    factor = factorise(covariance, targets.other_noise + extra_noise)
    log_determinants = [len(targets.members) * _log_determinant(factor)]
    inverse = inverse_from_factor(factor)
    # M_c of each class has the size of its members; a class without members has Σ_c = A.
    blocks = [np.empty((0, 0))] * len(targets.members)
    for c, rows in targets.represented:
        blocks[c] = factorise(-targets.gap * inverse[np.ix_(rows, rows)], 1.0)
        log_determinants.append(_log_determinant(blocks[c]))
    bare = DirichletPosterior(targets, inverse, tuple(blocks), np.zeros_like(residuals), sum(log_determinants))
    return replace(bare, weights=_solve(bare, residuals))


def _solve(posterior: DirichletPosterior, values: Array) -> Array:
    """Σ_c⁻¹ v_c of every column of (n, C) values: b_c + δ A⁻¹ E_c M_c⁻¹ E_cᵀ b_c with b_c = A⁻¹ v_c."""
    base = posterior.inverse @ values
    # The correction of class c lives on its members: one product with A⁻¹ serves all columns.
    correction = np.zeros_like(base)
    for c, rows in posterior.targets.represented:
        correction[rows, c] = cho_solve((posterior.blocks[c], True), base[rows, c], check_finite=False)
    return np.asarray(base + posterior.inverse @ (posterior.targets.gap * correction))


def covariance_gradient(posterior: DirichletPosterior) -> Array:
    """Gradient of −Σ_c log N(r_c; 0, Σ_c) in K: ½ [ C A⁻¹ + δ A⁻¹ (Σ_c E_c M_c⁻¹ E_cᵀ) A⁻¹ − Σ_c a_c a_cᵀ ]."""
    inverse, weights, targets = posterior.inverse, posterior.weights, posterior.targets
    # Every sample has one class, so the whitened columns of all classes form one matrix whose Gram matrix is the sum.
    half = np.concatenate([_whiten(posterior.blocks[c], inverse[rows].T).T for c, rows in targets.represented])
    # In place from here on: every temporary would be another n × n array.
    gradient = half.T @ half
    gradient *= targets.gap
    gradient -= weights @ weights.T
    gradient += len(posterior.blocks) * inverse
    gradient *= 0.5
    return np.asarray(gradient)


class NegativeLogLikelihood:
    r"""−Σ_c log N(ỹ_c; m_c 1, Σ_c) less its constant, in (log l_1 … log l_d, log s, log σ²), and its gradient.

    The prior mean of each class is the one that fits best, :math:`m_c = 1^\top\Sigma_c^{-1}\tilde y_c /
    1^\top\Sigma_c^{-1}1`; it is a minimiser, so it does not contribute to the gradient.
    """

    def __init__(self, inputs: Array, targets: DirichletTargets) -> None:
        # Centred, because far from the origin the gradient in the length scales is a small difference of huge numbers.
        self.inputs, self.targets = inputs - inputs.mean(axis=0), targets

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        found = Hyperparameters.from_logarithms(parameters)
        scaled = self.inputs / found.length_scales
        K = found.signal * RBF(1.0)(scaled)
        posterior, means = fit_means(K, found.noise, self.targets)
        residuals = self.targets.values - means
        value = 0.5 * (float((residuals * posterior.weights).sum()) + posterior.log_determinant)
        G = covariance_gradient(posterior)
        # ∂K/∂log s = K and ∂(σ²I)/∂log σ² = σ²I: with G = ∂/∂K, both derivatives are sums.
        M = G * K
        return value, np.r_[length_scale_gradient(M, scaled), M.sum(), found.noise * G.trace()]


def fit_means(K: Array, noise: float, targets: DirichletTargets) -> tuple[DirichletPosterior, Array]:
    """The posterior with the best-fitting prior means, and these means (C,)."""
    # Generalised least squares: Σ_c⁻¹ỹ_c and Σ_c⁻¹1 from the same factors.
    first = condition(K, targets.values, targets, noise)
    scales = _solve(first, np.ones_like(targets.values))
    means = first.weights.sum(axis=0) / scales.sum(axis=0)
    # Σ_c⁻¹(ỹ_c − m_c 1) by linearity, without another solve.
    return replace(first, weights=first.weights - scales * means), means


def expected_probabilities(mean: Array, variance: Array, draws: Array) -> Array:
    """Class probabilities E[softmax(f)], f ~ N(mean, diag(variance)), over the standard normal draws (S, C).

    All samples share the draws, so the probabilities of a sample do not depend on the rest of its batch.
    """
    latent = mean + np.sqrt(variance) * draws[:, None, :]
    # Softmax in place, shifted so that the exponentials cannot overflow.
    latent -= latent.max(axis=-1, keepdims=True)
    np.exp(latent, out=latent)
    latent /= latent.sum(axis=-1, keepdims=True)
    return np.asarray(latent.mean(axis=0))


def _log_determinant(factor: Array) -> float:
    return 2.0 * float(np.log(factor.diagonal()).sum())


def _whiten(block: Array, rows: Array) -> Array:
    """Rows v (t, m) as v F⁻ᵀ, F the lower factor of an (m, m) matrix M: their Gram matrix becomes that of M⁻¹."""
    return np.asarray(blas.dtrsm(1.0, block, rows, side=1, lower=1, trans_a=1))

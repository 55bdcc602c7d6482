"""A sparse Gaussian process for one target: m inducing points stand for n samples, at a cost of n·m²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import MissingDependencyError
from distreduce.gp._exact import BATCH_NUMBERS, factorise, train
from distreduce.gp._hyperparameters import WORST, Hyperparameters, Training
from distreduce.kernels import RBF

JITTER = 1e-8  # on the covariance of the inducing points, relative to the signal
TRAINING_SAMPLES = 10_000  # more hardly move the few hyperparameters, and each evaluation costs n·m²
EXACT_SAMPLES = 500


def train_sparse(
    inputs: Array,
    target: Array,
    inducing: Array,
    training: Training,
    scales: Array,
    known: Hyperparameters | None = None,
) -> SparseGP:
    """Train on the variational bound and condition on all samples; the inducing points are fixed.

    At most `TRAINING_SAMPLES` evenly spaced samples enter the bound. For noisy targets the trace term of the bound
    leads from a start with little noise to a plateau without any signal. Training therefore starts also at the
    hyperparameters of an exact GP: those `known`, or those of at most `EXACT_SAMPLES` samples.
    """
    rows = evenly_spaced(len(inputs), TRAINING_SAMPLES)
    objective = NegativeBound(inputs[rows], target[rows], inducing)
    if known is None and training.optimizer == "lbfgs":
        few = rows[evenly_spaced(len(rows), EXACT_SAMPLES)]
        known = train(inputs[few], target[few], training, scales)
    return SparseGP.of(inputs, target, inducing, training(objective, scales, known))


def evenly_spaced(n: int, size: int) -> Index:
    """At most `size` of n rows, evenly spaced because data are often sorted."""
    return np.unique(np.linspace(0, n - 1, size).astype(np.intp))


class NegativeBound:
    r"""Upper bound [1]_ on −log p(y) and its gradient, by autograd, in the logarithms of the hyperparameters.

    .. math::
        -\log N(y; 0, Q + \sigma^2 I) + \frac{1}{2\sigma^2}\mathrm{Tr}(K_{nn} - Q), \qquad
        Q = K_{nm} K_{mm}^{-1} K_{mn}

    References
    ----------
    .. [1] Titsias (2009). Variational learning of inducing variables in sparse Gaussian processes. AISTATS.
    """

    def __init__(self, inputs: Array, target: Array, inducing: Array) -> None:
        try:
            import torch
        except ImportError as error:
            raise MissingDependencyError(
                "n_prototypes trains sparse GPs with torch, which is not installed: pip install 'distreduce[gp]'."
            ) from error
        self.torch: Any = torch
        origin = inputs.mean(axis=0)  # distances are computed from squares, which an offset would swamp
        self.inputs, self.target, self.inducing = map(torch.tensor, (inputs - origin, target, inducing - origin))

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        """Value and gradient; `WORST` where the factorisation fails."""
        point = self.torch.tensor(parameters, requires_grad=True)
        try:
            value = self._value(point)
        except self.torch.linalg.LinAlgError:
            return WORST, np.zeros_like(parameters)
        (gradient,) = self.torch.autograd.grad(value, point)
        return value.item(), gradient.numpy()

    def _covariance(self, one: Any, other: Any) -> Any:
        squares = one.square().sum(1)[:, None] + other.square().sum(1) - 2 * one @ other.T
        return self.torch.exp(-0.5 * squares.clamp_min(0.0))

    def _value(self, point: Any) -> Any:
        torch, n, m = self.torch, len(self.inputs), len(self.inducing)
        scales, signal, noise = point[:-2].exp(), point[-2].exp(), point[-1].exp()
        Z, X = self.inducing / scales, self.inputs / scales
        identity = torch.eye(m, dtype=torch.float64)
        # K_mm = LLᵀ, A = L⁻¹K_mn/σ and B = I + AAᵀ: everything of size n enters through A alone.
        L = torch.linalg.cholesky(signal * (self._covariance(Z, Z) + JITTER * identity))
        A = torch.linalg.solve_triangular(L, signal * self._covariance(Z, X), upper=False) / noise.sqrt()
        LB = torch.linalg.cholesky(identity + A @ A.T)
        c = torch.linalg.solve_triangular(LB, (A @ self.target)[:, None], upper=False) / noise.sqrt()
        # The three terms of the bound, less the constant n log 2π / 2.
        fit = 0.5 * (self.target.square().sum() / noise - c.square().sum())
        determinant = LB.diagonal().log().sum() + 0.5 * n * noise.log()
        trace = 0.5 * (n * signal / noise - A.square().sum())
        return fit + determinant + trace


@dataclass(frozen=True)
class SparseGP:
    r"""Posterior through m inducing points; prior mean 0.

    With :math:`K_{mm} = LL^\top`, :math:`A = L^{-1}K_{mn}/\sigma` and :math:`B = I + AA^\top`,

    .. math::
        m(x) = a_x^\top B^{-1} A y/\sigma, \qquad v(x) = s + \sigma^2 - a_x^\top a_x + a_x^\top B^{-1} a_x, \qquad
        a_x = L^{-1}k_{mx}

    Attributes
    ----------
    inducing : (m, d) array
        Inducing points.
    hyperparameters : Hyperparameters
        Length scales, signal and noise.
    inner : (m, m) array
        B.
    projected : (m,) array
        A y/σ.
    target : (n,) array
        Training target.
    left_out : pair of (n,) arrays
        Leave-one-out mean and variance of the training target.
    """

    inducing: Array
    hyperparameters: Hyperparameters
    inner: Array
    projected: Array
    target: Array
    left_out: tuple[Array, Array]

    @classmethod
    def of(cls, inputs: Array, target: Array, inducing: Array, found: Hyperparameters) -> SparseGP:
        r"""Condition on the samples, in batches.

        Leave-one-out moments are those of the exact GP, with :math:`\Sigma^{-1} = (I - A^\top B^{-1}A)/\sigma^2`, plus
        the variance that the inducing points do not explain.
        """
        m, noise = len(inducing), found.noise
        # First pass: B and A y/σ are sums over the samples.
        inner, projected = np.eye(m), np.zeros(m)
        for rows in _batches(len(inputs), m):
            A = whiten(inducing, inputs[rows], found) / np.sqrt(noise)
            inner += A @ A.T
            projected += A @ target[rows] / np.sqrt(noise)
        LB = factorise(inner, 0.0)
        solution = solve_triangular(LB, projected, lower=True)
        # Second pass: the diagonal of Σ⁻¹ and Σ⁻¹y give the leave-one-out moments of each sample.
        mean, variance = np.empty(len(inputs)), np.empty(len(inputs))
        for rows in _batches(len(inputs), m):
            a = whiten(inducing, inputs[rows], found)
            half = solve_triangular(LB, a, lower=True)
            precision = (1.0 - np.einsum("ij,ij->j", half, half) / noise) / noise
            precision = np.maximum(precision, 1.0 / (found.signal + noise))  # rounding may break this bound
            error = (target[rows] - half.T @ solution) / noise
            mean[rows] = target[rows] - error / precision
            variance[rows] = 1.0 / precision + np.maximum(found.signal - np.einsum("ij,ij->j", a, a), 0.0)
        return cls(inducing, found, inner, projected, target, (mean, variance))

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and variance of the target (noise included) at each row, in batches of bounded size."""
        with single_threaded_blas():  # a loaded model must have the same bits with any number of threads
            LB = factorise(self.inner, 0.0)
            solution = solve_triangular(LB, self.projected, lower=True)
        mean, variance = np.empty(len(inputs)), np.empty(len(inputs))
        prior = self.hyperparameters.signal + self.hyperparameters.noise
        for rows in _batches(len(inputs), len(self.inducing)):
            a = whiten(self.inducing, inputs[rows], self.hyperparameters)
            half = solve_triangular(LB, a, lower=True, check_finite=False)
            mean[rows] = half.T @ solution
            variance[rows] = prior - np.einsum("ij,ij->j", a, a) + np.einsum("ij,ij->j", half, half)
        return mean, np.maximum(variance, self.hyperparameters.noise)

    def covariance(self, inputs: Array) -> Array:
        """Joint covariance (t, t) of the target at the rows, noise included."""
        a = whiten(self.inducing, inputs, self.hyperparameters)
        half = solve_triangular(factorise(self.inner, 0.0), a, lower=True)
        prior = self.hyperparameters.signal * RBF(1.0)(inputs / self.hyperparameters.length_scales)
        return np.asarray(prior - a.T @ a + half.T @ half + self.hyperparameters.noise * np.eye(len(inputs)))

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance of each training target given all others."""
        return self.left_out


def whiten(inducing: Array, inputs: Array, found: Hyperparameters) -> Array:
    """Return L⁻¹ K(Z, x) (m, t), with K(Z, Z) = L Lᵀ."""
    Z, X = inducing / found.length_scales, inputs / found.length_scales
    L = factorise(found.signal * RBF(1.0)(Z), JITTER * found.signal)
    return np.asarray(solve_triangular(L, found.signal * RBF(1.0)(Z, X), lower=True, check_finite=False))


def _batches(n: int, m: int) -> list[slice]:
    step = max(1, BATCH_NUMBERS // m)
    return [slice(start, start + step) for start in range(0, n, step)]

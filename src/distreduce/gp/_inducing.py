"""A sparse Gaussian process for one target, as files of earlier versions hold it: m inducing points for n samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.gp._exact import factorise, find_batches
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.kernels import RBF

JITTER = 1e-8  # on the covariance of the inducing points, relative to the signal


@dataclass(frozen=True)
class SparseGP:
    r"""Posterior through m inducing points; prior mean 0.

    With :math:`K_{mm} = LL^\top`, :math:`A = L^{-1}K_{mn}/\sigma` and :math:`B = I + AA^\top`,

    .. math::
        m(x) = a_x^\top B^{-1} A y/\sigma, \qquad v(x) = s + \sigma^2 - a_x^\top a_x + a_x^\top B^{-1} a_x, \qquad
        a_x = L^{-1}k_{mx}
    """

    inducing: Array  # (m, d), inducing points
    hyperparameters: Hyperparameters
    inner: Array  # B (m, m)
    projected: Array  # A y/σ (m,)

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and variance of the target (noise included) at each row, in batches of bounded size."""
        with single_threaded_blas():  # a loaded model must have the same bits with any number of threads
            LB = factorise(self.inner, 0.0)
            solution = solve_triangular(LB, self.projected, lower=True)
        mean, variance = np.empty(len(inputs)), np.empty(len(inputs))
        prior = self.hyperparameters.signal + self.hyperparameters.noise
        for rows in find_batches(len(inputs), len(self.inducing)):
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


def whiten(inducing: Array, inputs: Array, found: Hyperparameters) -> Array:
    """Return L⁻¹ K(Z, x) (m, t), with K(Z, Z) = L Lᵀ."""
    Z, X = inducing / found.length_scales, inputs / found.length_scales
    L = factorise(found.signal * RBF(1.0)(Z), JITTER * found.signal)
    return np.asarray(solve_triangular(L, found.signal * RBF(1.0)(Z, X), lower=True, check_finite=False))

"""The predictor of one target: Gaussian processes on several views of the samples, mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from distreduce._utils.typing import Array
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._matern import Matern32
from distreduce.gp._tails import Tails
from distreduce.kernels import DistanceKernel
from distreduce.mapping.relevance import GAUSSIAN

Views = Mapping[str, Array]
LEAST_WEIGHT = 1e-3  # processes below it are left out of predictions
# Kernels of the exact processes. "rough_inputs" are the same numbers as "inputs": targets may be rough or smooth in X.
KERNELS: Mapping[str, DistanceKernel] = {"inputs": GAUSSIAN, "rough_inputs": Matern32(), "embedding": GAUSSIAN}
GAUSSIAN_TAILS = Tails()


class Process(Protocol):
    """The interface of exact and sparse GPs."""

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Hyperparameters of the covariance."""
        ...

    @property
    def target(self) -> Array:
        """Training target."""
        ...

    def moments(self, inputs: Array) -> tuple[Array, Array]:
        """Mean and variance at each row."""
        ...

    def covariance(self, inputs: Array) -> Array:
        """Joint covariance of the rows."""
        ...

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance of each training target given the others."""
        ...


@dataclass(frozen=True)
class Stack:
    """One process per view of the samples (see `KERNELS`), their weights, the scale of the variance, and the tails."""

    processes: Mapping[str, Process]
    weights: Mapping[str, float]
    variance_scale: float = 1.0
    tails: Tails = GAUSSIAN_TAILS

    @classmethod
    def of(cls, processes: Mapping[str, Process], *, rescaled: bool, shaped: bool = False) -> Stack:
        """Weigh the processes by their leave-one-out densities, and the variance by their leave-one-out errors.

        The variance of a mixture includes the disagreement of its parts, which the data may not confirm, and the noise
        of a noise-free target is an arbitrary floor. The variance is therefore rescaled by the mean squared error in
        units of the variance. The mean divides by n less the number of hyperparameters, which were chosen with the same
        targets (an average over the processes, and at least n/2).

        Use ``rescaled=False`` for inputs that have seen the targets, whose leave-one-out errors are too small, and for
        the paper's GP, which has no such step. With ``shaped=True``, the tails of the errors are fitted as well, for
        the quantiles.
        """
        # Weights: stacking of the leave-one-out densities.
        left_out = {view: process.leave_one_out() for view, process in processes.items()}
        target = next(iter(processes.values())).target
        weights = stacking_weights(np.array([log_density(target, *moments) for moments in left_out.values()]))
        shares = dict(zip(processes, map(float, weights), strict=True))
        if not rescaled:
            return cls(dict(processes), shares)
        # Scale and tails: leave-one-out errors of the mixture, in units of its own deviation.
        means, variances = (np.array(part) for part in zip(*left_out.values(), strict=True))
        mean, variance = mixed_moments(weights, means, variances)
        errors = (target - mean) / np.sqrt(variance)
        tails = Tails.of(errors) if shaped else GAUSSIAN_TAILS
        return cls(dict(processes), shares, max(1e-6, float(errors @ errors) / _freedom(processes, shares)), tails)

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Mean and variance at each row."""
        used = self._used()
        parts = [self.processes[view].moments(views[view]) for view in used]
        means, variances = (np.array(part) for part in zip(*parts, strict=True))
        mean, variance = mixed_moments(np.array(list(used.values())), means, variances)
        return mean, self.variance_scale * variance

    def covariance(self, views: Views) -> Array:
        """Joint covariance (t, t): that of the mixture, :math:`\\sum_k w_k (C_k + (m_k - m)(m_k - m)^T)`."""
        mean, _ = self.moments(views)
        # The law of total covariance: within the parts, and between their means.
        total = np.zeros((len(mean), len(mean)))
        for view, weight in self._used().items():
            away = self.processes[view].moments(views[view])[0] - mean
            total += weight * (self.processes[view].covariance(views[view]) + np.outer(away, away))
        return self.variance_scale * total

    def _used(self) -> dict[str, float]:
        """Views and their weights, without processes of negligible weight."""
        used = {view: weight for view, weight in self.weights.items() if weight > LEAST_WEIGHT}
        return {view: weight / sum(used.values()) for view, weight in used.items()}


def _freedom(processes: Mapping[str, Process], shares: Mapping[str, float]) -> float:
    """n − k, but at least n/2, where k is the number of hyperparameters, averaged over the processes by weight."""
    k = sum(shares[view] * (len(process.hyperparameters.length_scales) + 2) for view, process in processes.items())
    n = len(next(iter(processes.values())).target)
    return float(max(n - k, 0.5 * n))


def log_density(target: Array, mean: Array, variance: Array) -> Array:
    """log N(y; m, v), element by element."""
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + (target - mean) ** 2 / variance))


def stacking_weights(log_densities: Array, max_iter: int = 1000, tol: float = 1e-6) -> Array:
    r"""Stacking weights (k,) of k models from their leave-one-out log densities (k, n) [1]_.

    .. math:: \max_{w \in \Delta} \sum_i \log \sum_k w_k\, p_k(y_i \mid y_{-i})

    The problem is concave; the EM step :math:`w_k \leftarrow \mathrm{mean}_i\, w_k p_{ki}/\sum_l w_l p_{li}` never
    lowers it and needs no step size.

    References
    ----------
    .. [1] Yao, Vehtari, Simpson, Gelman (2018). Using stacking to average Bayesian predictive distributions. Bayesian
       Analysis 13(3).
    """
    # Only ratios between models matter, so the best density of each sample becomes 1: nothing underflows.
    densities = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(len(densities), 1.0 / len(densities))
    for _ in range(max_iter):
        shares = weights[:, None] * densities
        updated = (shares / shares.sum(axis=0)).mean(axis=1)
        moved, weights = np.abs(updated - weights).max(), updated
        if moved < tol:
            break
    return weights


def mixed_moments(weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    r"""Mean and variance of the mixture of k Gaussians, (k, n) arrays.

    .. math:: m = \sum_k w_k m_k, \qquad v = \sum_k w_k (v_k + (m_k - m)^2)
    """
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)

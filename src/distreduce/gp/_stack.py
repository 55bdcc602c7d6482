"""The predictor of one target: Gaussian processes on several views of the samples, mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from distreduce._utils.typing import Array
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._matern import Matern32
from distreduce.gp._stacking import log_density, mixed_moments, stacking_weights
from distreduce.gp._tails import Tails
from distreduce.kernels import DistanceKernel
from distreduce.mapping.relevance import GAUSSIAN

Views = Mapping[str, Array]
LEAST_WEIGHT = 1e-3
# Correlations of the exact processes. "rough_inputs" are "inputs": targets may jump, bend or vary smoothly with them.
KERNELS: Mapping[str, DistanceKernel] = {"inputs": GAUSSIAN, "rough_inputs": Matern32(), "embedding": GAUSSIAN}
GAUSSIAN_TAILS = Tails()


class Process(Protocol):
    """What an exact and a sparse GP have in common."""

    @property
    def hyperparameters(self) -> Hyperparameters:
        """Of its covariance."""
        ...

    @property
    def target(self) -> Array:
        """What it was trained on."""
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
    """A process for each view of the samples (see `KERNELS`), its weight, the scale of the variance, and the tails."""

    processes: Mapping[str, Process]
    weights: Mapping[str, float]
    variance_scale: float = 1.0
    tails: Tails = GAUSSIAN_TAILS

    @classmethod
    def of(cls, processes: Mapping[str, Process], *, rescaled: bool, shaped: bool = False) -> Stack:
        """Weigh the processes by their leave-one-out densities, and the variance by their leave-one-out errors.

        A mixture is as wide as its parts and their disagreement, which the data may not confirm; and where a noise-free
        target pressed the noise to its floor, that floor is our doing and not the data's. The mean squared error in
        units of the variance says by how much; divided not by n but by n less the number of hyperparameters, which were
        chosen with the errors' own targets (a mean over the processes, and at least n/2). Not so with
        ``rescaled=False``, for inputs that have seen the targets (their leave-one-out errors are too small) and for the
        paper's GP, which has no such step. With ``shaped=True`` the errors also tell how heavy their tails are, for the
        quantiles.
        """
        left_out = {view: process.leave_one_out() for view, process in processes.items()}
        target = next(iter(processes.values())).target
        weights = stacking_weights(np.array([log_density(target, *moments) for moments in left_out.values()]))
        shares = dict(zip(processes, map(float, weights), strict=True))
        if not rescaled:
            return cls(dict(processes), shares)
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
        total = np.zeros((len(mean), len(mean)))
        for view, weight in self._used().items():
            away = self.processes[view].moments(views[view])[0] - mean
            total += weight * (self.processes[view].covariance(views[view]) + np.outer(away, away))
        return self.variance_scale * total

    def _used(self) -> dict[str, float]:
        """Views and their weights; processes of next to no weight are not asked."""
        used = {view: weight for view, weight in self.weights.items() if weight > LEAST_WEIGHT}
        return {view: weight / sum(used.values()) for view, weight in used.items()}


def _freedom(processes: Mapping[str, Process], shares: Mapping[str, float]) -> float:
    """n − k, with k the number of hyperparameters of a process, a mean by weight; at least n/2."""
    k = sum(shares[view] * (len(process.hyperparameters.length_scales) + 2) for view, process in processes.items())
    n = len(next(iter(processes.values())).target)
    return float(max(n - k, 0.5 * n))

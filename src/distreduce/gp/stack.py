"""The predictor of one target: Gaussian processes on several views of the samples, mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from distreduce.gp.hyperparameters import Hyperparameters
from distreduce.gp.stacking import log_density, mixed_moments, stacking_weights

Array = NDArray[np.float64]
Views = Mapping[str, Array]


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
    """A process for each view of the samples ("inputs", "embedding"), its weight, and the scale of the variance."""

    processes: Mapping[str, Process]
    weights: Mapping[str, float]
    variance_scale: float = 1.0

    @classmethod
    def of(cls, processes: Mapping[str, Process]) -> Stack:
        """Weigh the processes by their leave-one-out densities.

        Where a noise-free target pressed the noise to its floor, that floor is our doing and not the data's: the
        variance is then scaled down to what the leave-one-out errors show.
        """
        left_out = {view: process.leave_one_out() for view, process in processes.items()}
        target = next(iter(processes.values())).target
        weights = stacking_weights(np.array([log_density(target, *moments) for moments in left_out.values()]))
        shares = dict(zip(processes, map(float, weights), strict=True))
        scale = 1.0
        if any(process.hyperparameters.at_noise_floor for process in processes.values()):
            means, variances = (np.array(part) for part in zip(*left_out.values(), strict=True))
            mean, variance = mixed_moments(weights, means, variances)
            scale = float(np.clip(np.mean((target - mean) ** 2 / variance), 1e-6, 1.0))
        return cls(dict(processes), shares, scale)

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Mean and variance at each row; processes of no weight are not asked."""
        used = [view for view, weight in self.weights.items() if weight > 1e-3] or list(self.weights)
        weights = np.array([self.weights[view] for view in used])
        parts = [self.processes[view].moments(views[view]) for view in used]
        means, variances = (np.array(part) for part in zip(*parts, strict=True))
        mean, variance = mixed_moments(weights / weights.sum(), means, variances)
        return mean, self.variance_scale * variance

    def covariance(self, views: Views) -> Array:
        """Joint covariance (t, t): that of the mixture, :math:`\\sum_k w_k (C_k + (m_k - m)(m_k - m)^T)`."""
        means = {view: process.moments(views[view])[0] for view, process in self.processes.items()}
        mean = sum(self.weights[view] * means[view] for view in means)
        total = np.zeros((len(mean), len(mean)))  # type: ignore[arg-type]
        for view, process in self.processes.items():
            away = means[view] - mean
            total += self.weights[view] * (process.covariance(views[view]) + np.outer(away, away))
        return self.variance_scale * total

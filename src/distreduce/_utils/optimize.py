"""Minimisation: Adam, the optimiser of the paper, and the best point that any minimiser has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from distreduce._utils.typing import Array


class Adam:
    r"""The moving averages of Kingma & Ba (2015), with :math:`\beta_1 = 0.9, \beta_2 = 0.999`.

    .. math:: x \leftarrow x - \gamma\,\frac{m_t/(1-\beta_1^t)}{\sqrt{v_t/(1-\beta_2^t)} + 10^{-8}}
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate, self.n_steps = learning_rate, 0
        self.first: Array | float = 0.0  # arrays from the first step on
        self.second: Array | float = 0.0

    def step(self, x: Array, gradient: Array) -> Array:
        """The next point."""
        self.n_steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        mean, square = self.first / (1 - 0.9**self.n_steps), self.second / (1 - 0.999**self.n_steps)
        return np.asarray(x - self.learning_rate * mean / (np.sqrt(square) + 1e-8))


class BestSoFar:
    """An objective that remembers its best finite point, so that no minimiser can end above its start.

    `objective` goes from a point to its value, the gradient there, and anything else that is worth keeping for the best
    point. It fails if value or gradient is NaN or infinite, the value is at least `failed`, or an arithmetic error is
    raised.
    """

    def __init__(self, objective: Callable[[Array], tuple[Any, ...]], failed: float = np.inf) -> None:
        self.objective, self.failed = objective, failed
        self.point: Array | None = None  # the best one; None before the first finite value
        self.value, self.n_evaluations, self.n_failures = np.inf, 0, 0
        self.kept: list[Any] = []  # what the objective returned at `point` after value and gradient

    def __call__(self, point: Array) -> tuple[float, Array | None]:
        """Value and gradient; infinity and None where the objective fails."""
        self.n_evaluations += 1
        try:
            with np.errstate(all="ignore"):  # the caller handles failures
                value, gradient, *kept = self.objective(point)
        except (ArithmeticError, np.linalg.LinAlgError):
            value = np.inf
        # After an exception `gradient` is unbound, and the infinite value keeps it from being read.
        if not (np.isfinite(value) and value < self.failed and np.isfinite(gradient).all()):
            self.n_failures += 1
            return np.inf, None
        if value < self.value:
            # A copy: SciPy's minimisers write the next point into the same array.
            self.value, self.point, self.kept = value, point.copy(), kept
        return value, gradient

    def uphill(self, point: Array) -> tuple[float, Array]:
        """Value and gradient for a line search: where the objective fails, a higher value, so that it steps back.

        The value is not huge: interpolation would then lead to a step of length zero.
        """
        value, gradient = self(point)
        if gradient is None:
            # Before the first success there is no value to be above.
            return (0.0 if self.point is None else 1.0 + self.value + abs(self.value)), np.zeros_like(point)
        return value, gradient

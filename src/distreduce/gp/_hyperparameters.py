r"""Length scales, signal and noise of a GP, and the two ways to learn them from the marginal likelihood.

The covariance of our GPs is :math:`s\,k(\sum_f (x_f-x'_f)^2/l_f^2) + \sigma^2\,1[x \text{ is } x']`, where k is
the RBF, :math:`k(d^2) = \exp(-\tfrac12 d^2)`, or Matérn's kernel of order 3/2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from distreduce._utils.numerics import Adam, BestSoFar
from distreduce._utils.typing import Array
from distreduce.exceptions import NumericalError

Objective = Callable[[Array], tuple[float, Array]]
# Targets are standardised: the factorisation cannot distinguish noise below a thousandth of their spread from rounding.
NOISE_FLOOR = 1e-6
WORST = 1e25  # what an objective returns where a factorisation fails
SCALE_RANGE = 8.0  # length scales stay within a factor e⁸ of their start: beyond it, a feature has no effect


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of an ARD covariance: length scales l (d,), signal variance s, noise variance σ²."""

    length_scales: Array
    signal: float
    noise: float

    @classmethod
    def start(cls, length_scales: Array) -> Hyperparameters:
        """Where training on standardised targets starts, but for its length scales."""
        return cls(length_scales, 1.0, 0.1)

    @classmethod
    def from_logarithms(cls, parameters: Array) -> Hyperparameters:
        """From (log l_1 … log l_d, log s, log σ²)."""
        values = np.exp(parameters)
        return cls(values[:-2], float(values[-2]), float(values[-1]))

    def logarithms(self) -> Array:
        """(log l_1 … log l_d, log s, log σ²)."""
        return np.log(np.r_[self.length_scales, self.signal, self.noise])


@dataclass(frozen=True)
class Training:
    """How hyperparameters are learned: "lbfgs" to convergence, or the paper's "adam" with few steps.

    L-BFGS stops when a step lowers −log p(y) by less than `least_gain`, or than the fraction `tolerance` of it.
    """

    optimizer: str = "lbfgs"
    steps: int = 200  # largest number of iterations of L-BFGS, or the number of steps of Adam
    learning_rate: float = 0.1  # of Adam
    tolerance: float = 1e-9
    least_gain: float = 0.0

    def __call__(self, objective: Objective, start: Hyperparameters) -> Hyperparameters:
        """Minimise −log p(y), a function of the logarithms of the hyperparameters; Adam has a start of its own."""
        # Adam needs it to recognise failures, and returns its last point.
        best = BestSoFar(objective, failed=WORST)
        if self.optimizer == "adam":
            found = self._run_adam(best, len(start.length_scales))
        else:
            found = self._run_lbfgs(best, start)
        if found is None:
            raise NumericalError(
                "The marginal likelihood is not a number even at the start of training; scale X and y, and look for "
                "columns with constant or huge values."
            )
        return Hyperparameters.from_logarithms(found)

    def _run_lbfgs(self, best: BestSoFar, start: Hyperparameters) -> Array | None:
        """Return the best point seen, wherever the last line search ended."""
        reached = np.inf

        def stop_early(_: Array) -> None:
            nonlocal reached
            if reached - best.value < self.least_gain:
                raise StopIteration
            reached = best.value

        at = start.logarithms()
        # Signal within e⁻¹² … e⁸, noise from its floor to e³, both in units of the target's variance.
        bounds = [(one - SCALE_RANGE, one + SCALE_RANGE) for one in at[:-2]] + [(-12, 8), (np.log(NOISE_FLOOR), 3)]
        options = {"maxiter": self.steps, "ftol": self.tolerance}
        minimize(best.uphill, at, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=stop_early)
        return best.point

    def _run_adam(self, evaluate: BestSoFar, n_scales: int) -> Array | None:
        """Run Adam as in GPyTorch: on r with l = log(1 + eʳ) (noise: + 10⁻⁴), from r = 0, and return the last point.

        If the likelihood becomes NaN or infinite, training ends at the last point where it was finite.
        """
        raw, adam, safe = np.zeros(n_scales + 2), Adam(self.learning_rate), None
        # GPyTorch's floor of the noise; the others keep logarithms finite after steps that are far too long.
        floor = np.r_[np.full(n_scales + 1, 1e-100), 1e-4]
        for _ in range(self.steps):
            logarithms = np.log(np.logaddexp(0.0, raw) + floor)
            _, gradient = evaluate(logarithms)
            if gradient is None:
                return safe
            safe = logarithms
            # Chain rule from log l to r: the gradient is in log l, and dl/dr = expit(r).
            raw = adam.step(raw, gradient * np.exp(-logarithms) * expit(raw))
        return np.asarray(np.log(np.logaddexp(0.0, raw) + floor))

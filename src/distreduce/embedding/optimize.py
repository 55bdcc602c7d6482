"""The Z-step: which implementation of its objective to use, and its optimizers, L-BFGS and, as in the paper, Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize

from distreduce._utils.optimize import Adam, BestSoFar
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array
from distreduce.embedding import plain
from distreduce.embedding.fused import FusedObjective, supports
from distreduce.embedding.problem import EmbeddingProblem, Terms
from distreduce.exceptions import InvalidInputError, NumericalError

Objective = Callable[[Array], tuple[Terms, Array]]
# How often Adam returns to its best point with half the step before it ends there.
MOST_HALVINGS = 10


@dataclass(frozen=True)
class EmbeddingResult:
    """Result of a Z-step: the Z (m, p) with the smallest F seen, and F there."""

    prototypes: Array
    terms: Terms
    value: float
    n_evaluations: int
    converged: bool
    stuck: bool  # F was NaN or infinite wherever the optimizer went next, however small the step


def make_objective(problem: EmbeddingProblem, backend: str = "auto", workers: Workers = SERIAL) -> Objective:
    """Return ``objective(Z) -> (Terms, gradient)``; "auto": fused loops if they support the kernel, else NumPy."""
    name, _, device = backend.partition(":")  # "torch:cuda:0" names a device
    if name == "torch":
        from distreduce.embedding.torch import TorchObjective  # optional dependency

        return TorchObjective(problem, device or None)
    if backend == "numpy" or (backend == "auto" and not supports(problem)):
        return partial(plain.value_and_gradient, problem)
    if not supports(problem):  # "numba" was asked for by name, so do not fall back silently
        raise InvalidInputError(f"backend='numba' does not support embedding_kernel={problem.kernel!r}; use 'auto'.")
    return FusedObjective(problem, workers)


class _BestPrototypes(BestSoFar):
    """F in the variables `scale` (m, 1) times Z; remembers the best Z and its terms."""

    def __init__(self, objective: Objective, problem: EmbeddingProblem, scale: Array) -> None:
        def evaluate(flat: Array) -> tuple[float, Array, Terms]:
            terms, gradient = objective(self._unscale(flat))
            return terms.total(problem), (gradient / scale).ravel(), terms

        super().__init__(evaluate)
        self.scale = scale

    def result(self, converged: bool, *, stuck: bool) -> EmbeddingResult:
        """Return the best Z, and how the optimizer ended."""
        if self.point is None:
            raise NumericalError("The embedding's objective is not finite at its start; check the scale of X and y.")
        Z = self._unscale(self.point)
        return EmbeddingResult(Z, self.kept[0], self.value, self.n_evaluations, converged and not stuck, stuck)

    def _unscale(self, flat: Array) -> Array:
        return flat.reshape(len(self.scale), -1) / self.scale


def minimize_lbfgs(
    objective: Objective, problem: EmbeddingProblem, start: Array, *, max_iter: int = 300, tol: float = 1e-7
) -> EmbeddingResult:
    r"""Minimize F by L-BFGS in the variables :math:`\sqrt{r_k}\,z_k`, where weight two moves like two of weight one.

    Stops when F decreases by less than `tol`, relative to F.
    """
    # Empty prototypes have r = 0, by which the gradient cannot be divided.
    scale = np.sqrt(np.where(problem.reference > 0, problem.reference, 1.0))[:, None]
    best = _BestPrototypes(objective, problem, scale)
    # A gtol next to zero: the relative decrease of F alone decides when to stop.
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": tol, "gtol": 1e-12}
    found = minimize(best.uphill, (start * scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    # Status 1: out of iterations or evaluations; 2: the line search failed, even with an empty memory.
    return best.result(converged=found.status != 1, stuck=found.status == 2 and best.n_failures > 0)


def minimize_adam(
    objective: Objective,
    problem: EmbeddingProblem,
    start: Array,
    *,
    max_iter: int = 1000,
    tol: float = 1e-7,
    learning_rate: float = 1e-3,
) -> EmbeddingResult:
    """Minimize F by Adam, the paper's optimizer; stops on a relative decrease below `tol`.

    Where F is NaN or infinite it restarts from the best point so far with half the step.
    """
    best = _BestPrototypes(objective, problem, np.ones((len(start), 1)))  # Adam works on Z itself, as in the paper
    flat, adam, previous = start.ravel().copy(), Adam(learning_rate), np.inf
    for _ in range(max_iter):
        value, gradient = best(flat)
        if gradient is None:  # NaN or infinite: restart from the best point, without momentum
            if best.point is None or best.n_failures > MOST_HALVINGS:
                return best.result(converged=False, stuck=True)
            flat, adam = best.point.copy(), Adam(0.5 * adam.learning_rate)
            previous = np.inf  # the first decrease after a restart means nothing
            continue
        if abs(previous - value) <= tol * max(1.0, abs(value)):
            return best.result(converged=True, stuck=False)
        previous = value
        flat = adam.step(flat, gradient)
    best(flat)  # the last step has not been evaluated yet
    return best.result(converged=False, stuck=False)

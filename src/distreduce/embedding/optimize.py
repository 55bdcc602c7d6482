"""Minimisers for the Z-step: SciPy's L-BFGS, run to convergence, and Adam, as the paper does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from distreduce._utils.optimize import Adam, BestSoFar
from distreduce._utils.typing import Array
from distreduce.embedding.problem import EmbeddingProblem, Terms
from distreduce.exceptions import NumericalError

Objective = Callable[[Array], tuple[Terms, Array]]
# Times that Adam goes back to its best point with half the step, before it ends there.
MOST_HALVINGS = 10


@dataclass(frozen=True)
class EmbeddingResult:
    """Z with the smallest F seen, its terms, and how the minimiser ended.

    `stuck`: the objective was no number wherever the minimiser went next, with steps as small as it takes.
    """

    embedding: Array
    terms: Terms
    value: float
    n_evaluations: int
    converged: bool
    stuck: bool
    trace: tuple[float, ...] = ()


class _BestEmbedding(BestSoFar):
    """F of an embedding whose rows are multiplied by `scale` (m, 1); remembers the best one and its terms."""

    def __init__(self, objective: Objective, problem: EmbeddingProblem, scale: Array) -> None:
        def evaluate(flat: Array) -> tuple[float, Array, Terms]:
            self.last, gradient = objective(self._unscale(flat))
            return self.last.total(problem), (gradient / scale).ravel(), self.last

        super().__init__(evaluate)
        self.scale = scale
        self.dependence: list[float] = []

    def __call__(self, flat: Array) -> tuple[float, Array | None]:
        """Value and gradient, no gradient where they are not finite; the dependence is added to the trace."""
        value, gradient = super().__call__(flat)
        if gradient is not None:
            self.dependence.append(self.last.dependence)
        return value, gradient

    def result(self, converged: bool, *, stuck: bool) -> EmbeddingResult:
        """The best embedding, and how the minimiser ended."""
        if self.point is None:
            raise NumericalError("The embedding's objective is not a number at its start; check the scale of X and y.")
        return EmbeddingResult(
            self._unscale(self.point),
            self.kept[0],
            self.value,
            self.n_evaluations,
            converged and not stuck,
            stuck,
            tuple(self.dependence),
        )

    def _unscale(self, flat: Array) -> Array:
        return flat.reshape(len(self.scale), -1) / self.scale


def minimise_lbfgs(
    objective: Objective, problem: EmbeddingProblem, start: Array, *, max_iter: int = 300, tol: float = 1e-7
) -> EmbeddingResult:
    r"""L-BFGS in the variables :math:`\sqrt{r_k}\,z_k`, in which weight two moves like two of weight one.

    Stops when the objective's decrease is below `tol` relative to it.
    """
    scale = np.sqrt(np.where(problem.reference > 0, problem.reference, 1.0))[:, None]
    best = _BestEmbedding(objective, problem, scale)
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": tol, "gtol": 1e-12}
    found = minimize(best.uphill, (start * scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    # 1: out of iterations or of evaluations; 2: no line search went on, even from a memory made empty
    return best.result(converged=found.status != 1, stuck=found.status == 2 and best.n_failures > 0)


def minimise_adam(
    objective: Objective,
    problem: EmbeddingProblem,
    start: Array,
    *,
    max_iter: int = 1000,
    tol: float = 1e-7,
    learning_rate: float = 1e-3,
) -> EmbeddingResult:
    """Adam, the paper's optimiser; stops on a relative decrease below `tol`.

    Where the objective is no number it starts again from the best point so far, with half the step.
    """
    best = _BestEmbedding(objective, problem, np.ones((len(start), 1)))
    flat, adam, previous = start.ravel().copy(), Adam(learning_rate), np.inf
    for _ in range(max_iter):
        value, gradient = best(flat)
        if gradient is None:
            if best.point is None or best.n_failures > MOST_HALVINGS:
                return best.result(converged=False, stuck=True)
            flat, adam = best.point.copy(), Adam(0.5 * adam.learning_rate)
            previous = np.inf
            continue
        if abs(previous - value) <= tol * max(1.0, abs(value)):
            return best.result(converged=True, stuck=False)
        previous = value
        flat = adam.step(flat, gradient)
    best(flat)
    return best.result(converged=False, stuck=False)

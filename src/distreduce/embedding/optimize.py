"""Minimisers for the Z-step: SciPy's L-BFGS, run to convergence, and Adam, as the paper does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from distreduce._utils.optimize import Adam
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


class _Best:
    """Calls the objective and remembers the best finite point, so that no optimiser can end above its start."""

    def __init__(self, objective: Objective, problem: EmbeddingProblem, scale: Array) -> None:
        self.objective, self.problem, self.scale = objective, problem, scale
        self.value, self.n_evaluations, self.n_failures = np.inf, 0, 0
        self.embedding: Array | None = None
        self.terms: Terms | None = None
        self.dependence: list[float] = []

    def __call__(self, flat: Array) -> tuple[float, Array | None]:
        """Value and gradient; no gradient where they are no numbers."""
        Z = flat.reshape(len(self.scale), -1) / self.scale
        terms, gradient = self._evaluate(Z)
        self.n_evaluations += 1
        if terms is None:
            self.n_failures += 1
            return np.inf, None
        value = terms.total(self.problem)
        self.dependence.append(terms.dependence)
        if value < self.value:
            self.value, self.embedding, self.terms = value, Z, terms
        return value, (gradient / self.scale).ravel()

    def uphill(self, flat: Array) -> tuple[float, Array]:
        """The same for a line search: where there is no number, a higher value, from which it steps back.

        Not a huge one: its interpolation would lead to a step of no length.
        """
        value, gradient = self(flat)
        if gradient is None:
            return (1.0 + self.value + abs(self.value) if self.embedding is not None else 0.0), np.zeros_like(flat)
        return value, gradient

    def _evaluate(self, Z: Array) -> tuple[Terms | None, Array]:
        """Terms and gradient; no terms where anything of them is not finite, which the caller handles."""
        try:
            with np.errstate(all="ignore"):
                terms, gradient = self.objective(Z)
        except (ArithmeticError, np.linalg.LinAlgError):
            return None, Z
        finite = np.isfinite(terms.total(self.problem)) and np.isfinite(gradient).all()
        return (terms if finite else None), gradient

    def result(self, converged: bool, *, stuck: bool) -> EmbeddingResult:
        if self.embedding is None or self.terms is None:
            raise NumericalError("The embedding's objective is not a number at its start; check the scale of X and y.")
        return EmbeddingResult(
            self.embedding,
            self.terms,
            self.value,
            self.n_evaluations,
            converged and not stuck,
            stuck,
            tuple(self.dependence),
        )


def minimise_lbfgs(
    objective: Objective, problem: EmbeddingProblem, start: Array, *, max_iter: int = 300, tol: float = 1e-7
) -> EmbeddingResult:
    r"""L-BFGS in the variables :math:`\sqrt{r_k}\,z_k`, in which weight two moves like two of weight one.

    Stops when the objective's decrease is below `tol` relative to it.
    """
    scale = np.sqrt(np.where(problem.reference > 0, problem.reference, 1.0))[:, None]
    best = _Best(objective, problem, scale)
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
    best = _Best(objective, problem, np.ones((len(start), 1)))
    flat, adam, previous = start.ravel().copy(), Adam(learning_rate), np.inf
    for _ in range(max_iter):
        value, gradient = best(flat)
        if gradient is None:
            if best.embedding is None or best.n_failures > MOST_HALVINGS:
                return best.result(converged=False, stuck=True)
            flat, adam = best.embedding.ravel().copy(), Adam(0.5 * adam.learning_rate)
            previous = np.inf
            continue
        if abs(previous - value) <= tol * max(1.0, abs(value)):
            return best.result(converged=True, stuck=False)
        previous = value
        flat = adam.step(flat, gradient)
    best(flat)
    return best.result(converged=False, stuck=False)

"""Minimisers for the Z-step: SciPy's L-BFGS, run to convergence, and Adam, as the paper does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from distreduce.adam import Adam
from distreduce.embedding.problem import EmbeddingProblem, Terms
from distreduce.exceptions import NumericalError

Array = NDArray[np.float64]
Objective = Callable[[Array], tuple[Terms, Array]]


@dataclass(frozen=True)
class EmbeddingResult:
    """Z with the smallest F seen, its terms, and how the minimiser ended."""

    embedding: Array
    terms: Terms
    value: float
    n_evaluations: int
    converged: bool
    trace: tuple[float, ...] = ()


class _Best:
    """Calls the objective and remembers the best finite point, so that no optimiser can end above its start."""

    def __init__(self, objective: Objective, problem: EmbeddingProblem, scale: Array) -> None:
        self.objective, self.problem, self.scale = objective, problem, scale
        self.value, self.n_evaluations = np.inf, 0
        self.embedding: Array | None = None
        self.terms: Terms | None = None
        self.dependence: list[float] = []

    def __call__(self, flat: Array) -> tuple[float, Array]:
        Z = flat.reshape(len(self.scale), -1) / self.scale
        terms, gradient = self.objective(Z)
        value = terms.total(self.problem)
        self.n_evaluations += 1
        self.dependence.append(terms.dependence)
        if value < self.value:
            self.value, self.embedding, self.terms = value, Z, terms
        return value, (gradient / self.scale).ravel()

    def result(self, converged: bool) -> EmbeddingResult:
        if self.embedding is None or self.terms is None:
            raise NumericalError("The embedding's objective is not a number at its start; check the scale of X and y.")
        return EmbeddingResult(
            self.embedding, self.terms, self.value, self.n_evaluations, converged, tuple(self.dependence)
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
    found = minimize(best, (start * scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return best.result(converged=found.status != 1)  # 1: out of iterations or of evaluations


def minimise_adam(
    objective: Objective,
    problem: EmbeddingProblem,
    start: Array,
    *,
    max_iter: int = 1000,
    tol: float = 1e-7,
    learning_rate: float = 1e-3,
) -> EmbeddingResult:
    """Adam, the paper's optimiser; stops on a relative decrease below `tol`."""
    best = _Best(objective, problem, np.ones((len(start), 1)))
    flat, adam, previous = start.ravel().copy(), Adam(learning_rate), np.inf
    for _ in range(max_iter):
        value, gradient = best(flat)
        if abs(previous - value) <= tol * max(1.0, abs(value)):
            return best.result(converged=True)
        previous = value
        flat = adam.step(flat, gradient)
    best(flat)
    return best.result(converged=False)

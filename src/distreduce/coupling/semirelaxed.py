"""Semi-relaxed BSFGW (m < n): conditional gradient over plans of which only the row masses are given.

The linear oracle puts each row's mass on its cheapest prototype, no transport problem is solved. Plans are therefore
mixtures of few hard assignments, and C·V for such a vertex V is a sum of columns of C grouped by prototype.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from distreduce.coupling.problem import CouplingProblem, CouplingResult
from distreduce.parallel import SERIAL, Workers

Array = NDArray[np.float64]
ROWS_PER_CHUNK = 256


def hard_plan(assignment: NDArray[np.integer], weights: Array, n_prototypes: int) -> Array:
    """The vertex that sends row i, with all its mass, to prototype ``assignment[i]``."""
    plan = np.zeros((len(weights), n_prototypes))
    plan[np.arange(len(weights)), assignment] = weights
    return plan


@njit(nogil=True, cache=True)
def _grouped_columns(chunk, n_chunks, C, assignment, weights, out):  # type: ignore[no-untyped-def]
    n = C.shape[0]
    for i in range(chunk, n, n_chunks):
        for j in range(n):
            out[i, assignment[j]] += C[i, j] * weights[j]


def affinity_times_hard(
    affinity: NDArray[np.floating], assignment: NDArray[np.integer], weights: Array, m: int, workers: Workers = SERIAL
) -> Array:
    """C·V for a hard plan V in O(n²): column sums of C, grouped by prototype."""
    n = len(weights)
    out = np.zeros((n, m))
    workers.run(_grouped_columns, max(1, n // ROWS_PER_CHUNK), affinity, assignment, weights, out)
    return out


def solve_semirelaxed(
    problem: CouplingProblem, initial: Array, *, max_iter: int = 200, tol: float = 1e-9, workers: Workers = SERIAL
) -> CouplingResult:
    """Conditional gradient with exact line search from the plan `initial`, prototype targets refreshed at every step.

    Stops when the duality gap ⟨dJ/dT, T − V⟩, or the decrease of J, is below `tol` relative to J.
    """
    n, m = problem.shape
    T = initial.copy()
    CT = problem.affinity @ T
    value, rows = problem.value(T, CT), np.arange(n)
    for iteration in range(1, max_iter + 1):
        gradient = problem.gradient(T, CT)
        assignment = gradient.argmin(axis=1)
        gap = float((gradient * T).sum() - gradient[rows, assignment] @ problem.weights)
        if gap <= tol * max(1.0, abs(value)):
            return CouplingResult(T, value, iteration, True)
        V = hard_plan(assignment, problem.weights, m)
        CV = affinity_times_hard(problem.affinity, assignment, problem.weights, m, workers)
        step = problem.step_to(T, CT, V, CV, gradient)
        T, CT = ((1 - step) * T + step * V, (1 - step) * CT + step * CV) if step < 1 else (V, CV)
        previous, value = value, problem.value(T, CT)
        if step == 0 or previous - value <= tol * max(1.0, abs(value)):
            return CouplingResult(T, value, iteration, True)
    return CouplingResult(T, value, max_iter, False)

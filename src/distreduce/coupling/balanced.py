"""Balanced BSFGW (m = n): both marginals of the plan are given, as the paper assumes in pure dimensionality reduction.

Here the semi-relaxed plan collapses (404 prototypes of Boston fell to 53); the balanced one keeps every prototype, with
the identity as its natural start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from distreduce.coupling.conditional_gradient import conditional_gradient
from distreduce.coupling.problem import CouplingProblem, CouplingResult
from distreduce.coupling.products import hard_plan
from distreduce.parallel import SERIAL, Workers

Array = NDArray[np.float64]


def transport_vertex(cost: Array, rows: Array, columns: Array) -> sparse.csr_array:
    """argmin ⟨cost, V⟩ over plans with both marginals: an assignment if all masses are equal, else POT's simplex."""
    if len(rows) == len(columns) and np.ptp(rows) == 0 and np.ptp(columns) == 0:
        _, assignment = linear_sum_assignment(cost)
        return hard_plan(assignment, rows, len(columns))
    import ot  # here, because POT imports PyTorch wherever that is installed

    return sparse.csr_array(ot.emd(rows, columns, cost, numItermax=10_000_000))


def solve_balanced(
    problem: CouplingProblem,
    initial: sparse.csr_array,
    *,
    max_iter: int = 200,
    tol: float = 1e-9,
    workers: Workers = SERIAL,
) -> CouplingResult:
    """Minimise J(T) over {T ≥ 0, T1 = h, Tᵀ1 = the column masses of `initial`}."""
    columns = np.asarray(initial.sum(axis=0)).ravel()

    def cheapest(gradient: Array) -> sparse.csr_array:
        return transport_vertex(gradient, problem.weights, columns)

    return conditional_gradient(problem, initial, cheapest, max_iter=max_iter, tol=tol, workers=workers)

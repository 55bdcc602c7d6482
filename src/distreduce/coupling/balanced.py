"""Balanced BSFGW (m = n): both marginals of the plan are fixed, as the paper assumes for pure dimensionality reduction.

In this case the semi-relaxed plan collapses (on Boston, 53 of 404 prototypes were left). The balanced plan keeps every
prototype, and the identity is its natural start.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Plan
from distreduce.coupling.descent import conditional_gradient
from distreduce.coupling.plan import hard_plan
from distreduce.coupling.problem import CouplingProblem, CouplingResult
from distreduce.exceptions import NumericalError


def transport_vertex(cost: Array, rows: Array, columns: Array) -> Plan:
    """argmin ⟨cost, V⟩ over plans with both marginals.

    Whether a plan is optimal depends on its support alone (cyclical monotonicity): the best assignment is optimal for
    all masses that it can transport, such as equal ones or those of the identity. POT's simplex solves all others.
    """
    if not np.isfinite(cost).all():
        raise NumericalError("The cost of the coupling is not finite; check the scale of X and y.")
    # The assignment first, since it may already be the solution.
    if len(rows) == len(columns):
        _, assignment = linear_sum_assignment(cost)
        if np.array_equal(rows, columns[assignment]):
            return hard_plan(assignment, rows, len(columns))
    import ot  # lazily: POT imports PyTorch if it is installed

    # POT's simplex takes a problem with only negative costs to be infeasible, and returns zeros.
    return sparse.csr_array(ot.emd(rows, columns, cost - cost.min(), numItermax=10_000_000))


def solve_balanced(
    problem: CouplingProblem, initial: Plan, *, max_iter: int = 2000, tol: float = 1e-9, workers: Workers = SERIAL
) -> CouplingResult:
    """Minimise J(T) over {T ≥ 0, T1 = h, Tᵀ1 = the column masses of `initial`}."""
    columns = np.asarray(initial.sum(axis=0)).ravel()

    def cheapest(gradient: Array) -> Plan:
        return transport_vertex(gradient, problem.weights, columns)

    return conditional_gradient(problem, initial, cheapest, max_iter=max_iter, tol=tol, workers=workers)

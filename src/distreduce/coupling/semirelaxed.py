"""Semi-relaxed BSFGW (m < n): conditional gradient over plans with fixed row masses and free column masses.

The linear oracle puts the mass of each row on its cheapest prototype: no transport problem is solved, and plans are
mixtures of few hard assignments.
"""

from __future__ import annotations

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Plan
from distreduce.coupling.descent import conditional_gradient
from distreduce.coupling.plan import hard_plan
from distreduce.coupling.problem import CouplingProblem, CouplingResult
from distreduce.coupling.row_moves import move_rows


def solve_semirelaxed(
    problem: CouplingProblem, initial: Plan, *, max_iter: int = 2000, tol: float = 1e-9, workers: Workers = SERIAL
) -> CouplingResult:
    """Minimise J(T) over {T ≥ 0, T1 = h} from `initial`: conditional gradient, then exact moves of single rows."""

    def cheapest(gradient: Array) -> Plan:
        return hard_plan(gradient.argmin(axis=1), problem.weights, problem.shape[1])

    found = conditional_gradient(problem, initial, cheapest, max_iter=max_iter, tol=tol, workers=workers)
    return move_rows(problem, found, workers=workers)

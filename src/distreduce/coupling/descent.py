"""The conditional gradient (Frank-Wolfe) loop that both couplings share; they differ in the linear oracle alone."""

from __future__ import annotations

from collections.abc import Callable

from scipy import sparse

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array
from distreduce.coupling.problem import CouplingProblem, CouplingResult
from distreduce.coupling.products import affinity_times_plan, rescale_rows

Oracle = Callable[[Array], sparse.csr_array]


def conditional_gradient(
    problem: CouplingProblem,
    initial: sparse.csr_array,
    oracle: Oracle,
    *,
    max_iter: int,
    tol: float,
    workers: Workers = SERIAL,
) -> CouplingResult:
    r"""Descend J from `initial` by exact steps to the vertices :math:`V = \arg\min_V \langle \nabla J(T), V\rangle`.

    The prototype targets are held while the steps converge and then refreshed, which only lowers J, until that does not
    help any more. From one start the path is then that of POT's solvers, and never ends above them.
    """
    T, CT = initial, affinity_times_plan(problem.affinity, initial, workers)
    value, n_iter, converged = problem.value(T, CT), 0, False
    while n_iter < max_iter and not converged:
        T, CT, steps, settled = _descend(problem.with_targets_held(T), T, CT, oracle, max_iter - n_iter, tol, workers)
        previous, value, n_iter = value, problem.value(T, CT), n_iter + steps
        converged = settled and (problem.targets is None or previous - value <= tol * max(1.0, abs(value)))
    return CouplingResult(rescale_rows(T, problem.weights), CT, value, n_iter, converged)


def _descend(
    problem: CouplingProblem,
    T: sparse.csr_array,
    CT: Array,
    oracle: Oracle,
    max_iter: int,
    tol: float,
    workers: Workers,
) -> tuple[sparse.csr_array, Array, int, bool]:
    """T, C·T, the steps taken and whether they ended at `tol`, for targets that are held; C·T moves with the step.

    Stops when the duality gap ⟨∇J(T), T − V⟩, or the decrease of J, is below `tol` relative to J.
    """
    value = problem.value(T, CT)
    for iteration in range(1, max_iter + 1):
        gradient = problem.gradient(T, CT)
        V = oracle(gradient)
        if (T - V).multiply(gradient).sum() <= tol * max(1.0, abs(value)):
            return T, CT, iteration, True
        CV = affinity_times_plan(problem.affinity, V, workers)
        step = problem.step_to(T, CT, V, CV, gradient)
        T, CT = _mix(T, V, step), (1 - step) * CT + step * CV
        previous, value = value, problem.value(T, CT)
        if step == 0 or previous - value <= tol * max(1.0, abs(value)):
            return T, CT, iteration, True
    return T, CT, max_iter, False


def _mix(T: sparse.csr_array, V: sparse.csr_array, step: float) -> sparse.csr_array:
    """(1 − τ) T + τ V, without entries that a full step leaves at zero."""
    if step == 1.0:
        return V
    mixed = sparse.csr_array((1 - step) * T + step * V)
    mixed.eliminate_zeros()
    return mixed

"""The conditional gradient (Frank-Wolfe) loop that both couplings share; they differ in the linear oracle alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce.coupling.problem import CouplingProblem, CouplingResult
from distreduce.coupling.products import affinity_times_plan, rescale_rows
from distreduce.parallel import SERIAL, Workers

Array = NDArray[np.float64]
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

    The prototype targets are refreshed at every step, at no cost (envelope theorem), and C·T is kept and moved with the
    step. Stops when the duality gap :math:`\langle \nabla J(T), T - V\rangle`, or the decrease of J, is below `tol`
    relative to J: no vertex is better to first order.
    """
    T, CT = initial, affinity_times_plan(problem.affinity, initial, workers)
    value = problem.value(T, CT)
    for iteration in range(1, max_iter + 1):
        gradient = problem.gradient(T, CT)
        V = oracle(gradient)
        if (T - V).multiply(gradient).sum() <= tol * max(1.0, abs(value)):
            return CouplingResult(T, CT, value, iteration, True)
        CV = affinity_times_plan(problem.affinity, V, workers)
        step = problem.step_to(T, CT, V, CV, gradient)
        T, CT = _mix(T, V, step), (1 - step) * CT + step * CV
        previous, value = value, problem.value(T, CT)
        if step == 0 or previous - value <= tol * max(1.0, abs(value)):
            return CouplingResult(rescale_rows(T, problem.weights), CT, value, iteration, True)
    return CouplingResult(rescale_rows(T, problem.weights), CT, value, max_iter, False)


def _mix(T: sparse.csr_array, V: sparse.csr_array, step: float) -> sparse.csr_array:
    """(1 − τ) T + τ V, without entries that a full step leaves at zero."""
    if step == 1.0:
        return V
    mixed = sparse.csr_array((1 - step) * T + step * V)
    mixed.eliminate_zeros()
    return mixed

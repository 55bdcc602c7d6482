"""The solvers of the T-step: conditional gradient (Frank-Wolfe), with exact line search and moves of single rows.

One loop serves all couplings; what differs is behind :class:`Descent`. Semi-relaxed (m < n) and balanced (m = n) have
different cheapest vertices; on shards everything comes from m×m matrices (:mod:`.sharded`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from distreduce._utils.threads import KERNEL, SERIAL, Workers, too_few_to_compile
from distreduce._utils.typing import Array, Plan
from distreduce.coupling.line_search import exact_step, move_towards
from distreduce.coupling.problem import (
    CouplingProblem,
    CouplingResult,
    add_products,
    affinity_times_plan,
    hard_plan,
    inner,
    rescale_rows,
    subtract,
)
from distreduce.exceptions import NumericalError

# Returns the vertex V that minimises ⟨gradient, V⟩.
CheapestVertex = Callable[[Array], Plan]


@dataclass(frozen=True)
class Iterate:
    """A plan T with what follows from it linearly, and J without the constant of GW."""

    plan: Plan
    product: Array  # C·T and C·T·h2 as one array (2, n, m), or TᵀCT on shards
    value: float


@dataclass(frozen=True)
class Direction:
    """The cheapest vertex V at an iterate, and the duality gap ⟨∇J(T), T − V⟩."""

    at: Iterate
    vertex: Plan
    gap: float
    across: Array | None = None  # VᵀCT, which the line search on shards needs besides


class Descent(Protocol):
    """J with the prototype targets held: an upper bound on J, quadratic in T."""

    def direction(self, at: Iterate) -> Direction:
        """The cheapest vertex; `at` of the result has the value that the decrease is measured from."""
        ...

    def search(self, direction: Direction) -> tuple[float, Iterate]:
        """The exact step τ towards the vertex, and the iterate after it."""
        ...


def descend(problem: Descent, at: Iterate, max_iter: int, tol: float) -> tuple[Iterate, int, bool]:
    """The last iterate, the number of steps, and whether they ended at `tol`.

    Stops when the duality gap, or the decrease of J, is below `tol` relative to J.
    """
    for iteration in range(1, max_iter + 1):
        direction = problem.direction(at)
        # Stationary: no vertex is cheaper than T by more than the tolerance.
        if direction.gap <= tol * max(1.0, abs(direction.at.value)):
            return direction.at, iteration, True
        step, at = problem.search(direction)
        # Exhausted: even the exact step does not lower J.
        if step == 0 or direction.at.value - at.value <= tol * max(1.0, abs(at.value)):
            return at, iteration, True
    return at, max_iter, False


def conditional_gradient(
    problem: CouplingProblem,
    initial: Plan,
    cheapest: CheapestVertex,
    *,
    max_iter: int,
    tol: float,
    workers: Workers = SERIAL,
) -> CouplingResult:
    r"""Descend J from `initial` by exact steps to the vertices :math:`V = \arg\min_V \langle \nabla J(T), V\rangle`.

    The prototype targets are held while the steps converge and then refreshed, which only lowers J, until that does not
    help any more. From one start the path is then that of POT's solvers, and never ends above them.
    """
    vertex_times = _VertexProducts(problem.affinity, workers)
    T, CT = initial, affinity_times_plan(problem.affinity, initial, workers)
    held, n_iter, converged = problem.with_targets_held(T), 0, False
    # J itself, where the targets are those of T.
    at = Iterate(T, np.array([CT, CT @ problem.h2]), held.value(T, CT))
    while n_iter < max_iter and not converged:
        # Descend with the targets held, then refresh them and measure what that gains.
        previous = at.value
        at, steps, settled = descend(_DenseDescent(held, cheapest, vertex_times), at, max_iter - n_iter, tol)
        n_iter, held = n_iter + steps, problem.with_targets_held(at.plan)
        at = replace(at, value=held.value(at.plan, at.product[0]))
        # Without targets nothing is refreshed: the first descent is the last.
        converged = settled and (problem.targets is None or previous - at.value <= tol * max(1.0, abs(at.value)))
    return CouplingResult(rescale_rows(at.plan, problem.weights), at.product[0], at.value, n_iter, converged)


class _VertexProducts:
    """C·V of one vertex after another: from one to the next few rows change, and only their part is computed."""

    def __init__(self, affinity: NDArray[np.floating], workers: Workers) -> None:
        self.affinity, self.workers = affinity, workers
        self._vertex: Plan | None = None
        self._product = np.empty(0)

    def __call__(self, V: Plan) -> Array:
        n, last = len(self.affinity), self._vertex
        # Hard plans only, whose row i is h_i in one place. Most rows changed: afresh, which also ends the roundings.
        changed = np.arange(n) if last is None or V.nnz > n else np.flatnonzero(V.indices != last.indices)
        if last is None or too_few_to_compile(n) or 4 * len(changed) > n:
            self._product = affinity_times_plan(self.affinity, V, self.workers)
        else:
            add_products(self.affinity, changed, sparse.csr_array(V - last), self._product, self.workers)
        self._vertex = V if V.nnz == n else None
        return self._product


@dataclass(frozen=True)
class _DenseDescent:
    """:class:`Descent` with C and C·T in memory; all that is linear in T moves with the step."""

    problem: CouplingProblem  # its targets are held
    cheapest: CheapestVertex
    vertex_times: _VertexProducts

    def direction(self, at: Iterate) -> Direction:
        gradient = self.problem.gradient(at.plan, at.product[1])
        V = self.cheapest(gradient)
        return Direction(at, V, inner(at.plan, gradient) - inner(V, gradient))

    def search(self, direction: Direction) -> tuple[float, Iterate]:
        at, V, b = direction.at, direction.vertex, -direction.gap  # b is the slope ⟨∇J, V − T⟩
        CV = self.vertex_times(V)
        to_vertex = np.array([CV, CV @ self.problem.h2])
        to_vertex -= at.product
        a = self.problem.curvature(at.plan, V, to_vertex[1])
        step = exact_step(a, b)
        to_vertex *= step
        to_vertex += at.product
        # The targets are held, so that J is this quadratic on the whole segment.
        return step, Iterate(move_towards(at.plan, V, step), to_vertex, at.value + (a * step + b) * step)


MAX_SWEEPS = 50
# A move must lower J by this share of it: smaller gains are rounding, and moves could cycle.
LEAST_GAIN = 1e-12


def move_rows(problem: CouplingProblem, found: CouplingResult, *, workers: Workers = SERIAL) -> CouplingResult:
    """Sweep until no row lowers J by moving with all its mass; every sweep refreshes the prototype targets.

    The gradient counts the row itself where it now is: C_ii, the largest entry of a row of C, favours staying. The
    exact change of J takes into account that the row itself moves. It is to the conditional gradient what Hartigan's
    step is to Lloyd's in k-means, and lowers J by 3 to 4 % on entropic affinities with the KL loss.
    """
    # Dense copies: a sweep changes single rows of T, and C·T by columns.
    T, CT, h2 = found.plan.toarray(), found.affinity_plan.copy(), problem.h2
    CTh2, moved, touched, ever = CT @ h2, np.zeros(CT.T.shape), np.empty(len(h2), np.int64), False
    least = LEAST_GAIN * max(1.0, abs(found.value))
    for _ in range(MAX_SWEEPS):
        slopes = -2 * problem.alpha * CTh2
        slopes += problem.linear_cost(T)
        f2q = problem.f2 @ T.sum(axis=0)  # afresh in every sweep: within one, moves update it and its roundings add up
        constants = (problem.affinity, problem.weights, problem.f2, h2, problem.alpha, slopes, least)
        columns = touched[: _sweep(*constants, T, moved, f2q, touched)]
        if not len(columns):
            break
        ever, change = True, moved[columns].T
        CT[:, columns] += change
        CTh2 += change @ h2[columns]
        moved[columns] = 0.0
    if not ever:
        return found
    plan = sparse.csr_array(T)
    # Afresh, without the roundings of all the moves: a fit that resumes from a checkpoint has the same bits.
    CT = affinity_times_plan(problem.affinity, plan, workers)
    return replace(found, plan=plan, affinity_plan=CT, value=problem.value(plan, CT))


@njit(**KERNEL)
def _sweep(C, h, f2, h2, alpha, slopes, least, T, moved, f2q, touched):  # type: ignore[no-untyped-def]
    """Move every row that gains; update T, f2·q and `moved`, the change of (C·T)ᵀ.

    `slopes` are ∇J without f2·q, at the start of the sweep. Returns how many prototypes gained or lost a row, and
    writes them to `touched`.
    """
    n, m = T.shape
    n_touched = 0
    slope, across, change = np.empty(m), np.empty(m), np.empty(m)
    for i in range(n):
        for b in range(m):
            slope[b] = slopes[i, b] + 2 * alpha * f2q[b]
        for t in range(n_touched):  # what the moves before this one changed
            subtract(2 * alpha * moved[touched[t], i], h2[touched[t]], slope)
        target = changes(C[i, i], h[i], f2, h2, alpha, T[i], slope, across, change)
        if change[target] < -least:
            # Apply the move: its row d of the difference changes T, q and CT.
            for k in range(m):
                d = (h[i] if k == target else 0.0) - T[i, k]
                if d != 0.0:
                    T[i, k] += d
                    subtract(-d, f2[k], f2q)
                    n_touched = _note(k, touched, n_touched)
                    subtract(-d, C[i], moved[k])  # C is symmetric: row i instead of column i
    return n_touched


@njit(**KERNEL)
def _note(k, noted, count):  # type: ignore[no-untyped-def]
    """Append k to the first `count` entries of `noted` unless it is one of them; return the new count."""
    for t in range(count):
        if noted[t] == k:
            return count
    noted[count] = k
    return count + 1


@njit(**KERNEL)
def changes(own, h, f2, h2, alpha, row, slope, across, change):  # type: ignore[no-untyped-def]
    """Write J(row → h e_b) − J for every prototype b; return the b with the lowest, the first of equal ones.

    With d = h e_b − row it is ⟨∇J, d⟩ + α dᵀ(f2 − C_ii h2) d. `slope` is ∇J of the row, `across` room for
    (f2 − C_ii h2) row.
    """
    m = len(row)
    for b in range(m):
        across[b] = 0.0
    for l in range(m):
        if row[l] != 0.0:
            subtract(-row[l], f2[l], across)
            subtract(own * row[l], h2[l], across)
    # What does not depend on the target b.
    constant = 0.0
    for l in range(m):
        constant += row[l] * (alpha * across[l] - slope[l])
    best = 0
    for b in range(m):
        change[b] = h * (slope[b] + alpha * (h * (f2[b, b] - own * h2[b, b]) - 2 * across[b])) + constant
        if change[b] < change[best]:
            best = b
    return best


def solve_semirelaxed(
    problem: CouplingProblem, initial: Plan, *, max_iter: int = 2000, tol: float = 1e-9, workers: Workers = SERIAL
) -> CouplingResult:
    """Minimise J(T) over {T ≥ 0, T1 = h} from `initial`: conditional gradient, then exact moves of single rows.

    The cheapest vertex puts the mass of each row on one prototype: plans are mixtures of few hard assignments.
    """

    def cheapest(gradient: Array) -> Plan:
        return hard_plan(gradient.argmin(axis=1), problem.weights, problem.shape[1])

    found = conditional_gradient(problem, initial, cheapest, max_iter=max_iter, tol=tol, workers=workers)
    return move_rows(problem, found, workers=workers)


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

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Problem infeasible", category=UserWarning)
        # POT's simplex takes a problem with only negative costs to be infeasible, and returns zeros.
        return sparse.csr_array(ot.emd(rows, columns, cost - cost.min(), numItermax=10_000_000))


def solve_balanced(
    problem: CouplingProblem, initial: Plan, *, max_iter: int = 2000, tol: float = 1e-9, workers: Workers = SERIAL
) -> CouplingResult:
    """Minimise J(T) over {T ≥ 0, T1 = h, Tᵀ1 = the column masses of `initial`}, for one prototype per sample.

    There the semi-relaxed plan collapses (on Boston, 53 of 404 prototypes were left); this one keeps every prototype.
    """
    columns = np.asarray(initial.sum(axis=0)).ravel()

    def cheapest(gradient: Array) -> Plan:
        found = transport_vertex(gradient, problem.weights, columns)
        # Masses over twenty orders of magnitude seem infeasible to the simplex: the initial plan has these marginals.
        return found if found.nnz else initial

    return conditional_gradient(problem, initial, cheapest, max_iter=max_iter, tol=tol, workers=workers)

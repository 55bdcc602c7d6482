"""The conditional gradient (Frank-Wolfe) descent of the T-step: one loop for all couplings.

What differs between them is behind :class:`Descent`: the semi-relaxed and the balanced coupling have different cheapest
vertices (`Oracle`), and the coupling on shards computes everything from m×m matrices (:mod:`.sharded`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Plan
from distreduce.coupling.line_search import move_towards
from distreduce.coupling.plan import affinity_times_plan, rescale_rows
from distreduce.coupling.problem import CouplingProblem, CouplingResult

# Finds the vertex V that minimises ⟨gradient, V⟩.
Oracle = Callable[[Array], Plan]


@dataclass(frozen=True)
class Iterate:
    """A plan T with its product with the affinity (C·T, or TᵀCT on shards) and J without the constant of GW."""

    plan: Plan
    product: Array
    value: float


@dataclass(frozen=True)
class Direction:
    """The cheapest vertex V at an iterate, and the duality gap ⟨∇J(T), T − V⟩."""

    at: Iterate
    vertex: Plan
    gap: float


D = TypeVar("D", bound=Direction)


class Descent(Protocol[D]):
    """J with the prototype targets held: an upper bound on J, quadratic in T."""

    def direction(self, at: Iterate) -> D:
        """The cheapest vertex; `at` of the result has the value that the decrease is measured from."""
        ...

    def search(self, direction: D) -> tuple[float, Iterate]:
        """The exact step τ towards the vertex, and the iterate after it."""
        ...


def descend(problem: Descent[D], at: Iterate, max_iter: int, tol: float) -> tuple[Iterate, int, bool]:
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
    problem: CouplingProblem, initial: Plan, oracle: Oracle, *, max_iter: int, tol: float, workers: Workers = SERIAL
) -> CouplingResult:
    r"""Descend J from `initial` by exact steps to the vertices :math:`V = \arg\min_V \langle \nabla J(T), V\rangle`.

    The prototype targets are held while the steps converge and then refreshed, which only lowers J, until that does not
    help any more. From one start the path is then that of POT's solvers, and never ends above them.
    """
    T, CT = initial, affinity_times_plan(problem.affinity, initial, workers)
    value, n_iter, converged = problem.value(T, CT), 0, False
    while n_iter < max_iter and not converged:
        held = problem.with_targets_held(T)  # hold the targets at T, descend, and measure what refreshing them gains
        start = Iterate(T, CT, held.value(T, CT))
        found, steps, settled = descend(_DenseDescent(held, oracle, workers), start, max_iter - n_iter, tol)
        T, CT = found.plan, found.product
        previous, value, n_iter = value, problem.value(T, CT), n_iter + steps
        # Without targets nothing is refreshed: the first descent is the last.
        converged = settled and (problem.targets is None or previous - value <= tol * max(1.0, abs(value)))
    return CouplingResult(rescale_rows(T, problem.weights), CT, value, n_iter, converged)


@dataclass(frozen=True)
class _DenseDirection(Direction):
    gradient: Array


@dataclass(frozen=True)
class _DenseDescent:
    """:class:`Descent` with C and C·T in memory; C·T moves with the step."""

    problem: CouplingProblem
    oracle: Oracle
    workers: Workers

    def direction(self, at: Iterate) -> _DenseDirection:
        gradient = self.problem.gradient(at.plan, at.product)
        V = self.oracle(gradient)
        return _DenseDirection(at, V, (at.plan - V).multiply(gradient).sum(), gradient)

    def search(self, direction: _DenseDirection) -> tuple[float, Iterate]:
        T, CT, V = direction.at.plan, direction.at.product, direction.vertex
        CV = affinity_times_plan(self.problem.affinity, V, self.workers)
        step = self.problem.step_to(T, CT, V, CV, direction.gradient)
        # C·T is linear in T: the new plan needs no product of its own.
        T, CT = move_towards(T, V, step), (1 - step) * CT + step * CV
        return step, Iterate(T, CT, self.problem.value(T, CT))

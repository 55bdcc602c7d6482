"""The coupling T over a sparse affinity in shards: the descent of the dense solvers with nothing n×m in memory.

A pass over the samples computes, row by row, (CT)_i from the plan of the neighbours, the gradient and the cheapest
prototype, and adds up the m×m matrices TᵀCT and VᵀCT. The same pass at V gives VᵀCV. These three and the masses are
all that the exact step along T + τ(V − T) needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from distreduce._utils.typing import Array, Plan
from distreduce.coupling import _shard_passes as passes
from distreduce.coupling.descent import Direction, Iterate, descend
from distreduce.coupling.line_search import exact_step, move_towards
from distreduce.coupling.problem import PlanEntries, column_mass, hard_plan, move_to, rescale_rows
from distreduce.losses import BregmanLoss, InnerLoss, SquaredLoss
from distreduce.sharding.shards import Shards

MAX_ITER, MAX_SWEEPS, MAX_HALVINGS = 2000, 50, 6


@dataclass(frozen=True)
class ShardedCoupling:
    """The semi-relaxed BSFGW problem of :class:`distreduce.coupling.problem.CouplingProblem` on shards.

    The linear cost is that of the map, (μ/2)|z_k − (KL)_i|².
    """

    shards: Shards  # with the parts "affinity" (rows of C) and "targets" (rows of Y, or None)
    weights: Array
    f2: Array
    h2: Array
    prototypes: Array  # Z (m, p)
    fitted: Array  # KL (n, p), where the map puts the samples
    mu: float
    loss: BregmanLoss = SquaredLoss()
    alpha: float = 0.2

    def structure(self, mass: Array, transported: Array) -> float:
        """GW(T) without its constant, from q and TᵀCT; also of a difference of plans."""
        return float(mass @ self.f2 @ mass) - float((transported * self.h2).sum())

    def hold(self, T: Plan, prototype_targets: Array | None) -> passes.HeldProblem:
        """The problem around T with the prototype targets held."""
        costs = passes.RowCosts(self.loss, 1 - self.alpha, prototype_targets, self.prototypes, self.mu)
        return passes.HeldProblem(PlanEntries.of(T), self.f2 @ column_mass(T), self.h2, self.alpha, costs)


def transported_on_shards(shards: Shards, plan: Plan) -> Array:
    """TᵀCT (m, m), exactly symmetric."""
    total = passes.add_sparse(shards.collect(passes.Transported(plan, PlanEntries.of(plan))), plan.shape[1])
    return 0.5 * (total + total.T)


def structure_constant_on_shards(shards: Shards, weights: Array, loss: InnerLoss) -> float:
    r""":math:`\sum_{ij} f_1(C_{ij}) h_i h_j` over the entries of the part "affinity"; outside them f_1(0) = 0."""
    return sum(shards.collect(passes.StructureConstant(weights, weights, loss)), start=0.0)


def supervision_on_shards(shards: Shards, plan: Plan, loss: BregmanLoss) -> float:
    """Σ_ij L_s(y_i, g_j*(T)) T_ij; zero without targets."""
    targets = _prototype_targets(shards, plan, loss)
    return 0.0 if targets is None else float(sum(shards.collect(passes.Supervision(plan, loss, targets))))


def solve_on_shards(problem: ShardedCoupling, initial: Plan, *, tol: float = 1e-9) -> tuple[Plan, Array]:
    """Minimise J(T) over {T ≥ 0, T1 = h} from `initial`; return T and TᵀCT.

    As in :func:`distreduce.coupling.descent.solve_semirelaxed`: conditional gradient with the prototype targets held
    and then refreshed, then exact moves of single rows, here of many at once.
    """
    # Product and value of the start are unknown: the first pass computes them.
    at, n_iter, converged = Iterate(initial, np.empty(0), np.inf), 0, False
    while n_iter < MAX_ITER and not converged:
        targets = _prototype_targets(problem.shards, at.plan, problem.loss)
        descent, start = _ShardedDescent(problem, targets), replace(at, ahead=None)  # that was for other targets
        before, (at, steps, _) = at, descend(descent, start, MAX_ITER - n_iter, tol)
        # As in the dense solver: until refreshed targets gain no more.
        converged = targets is None or before.value - at.value <= tol * max(1.0, abs(at.value))
        n_iter += steps
    return _move_rows(problem, rescale_rows(at.plan, problem.weights), at.product, tol)


@dataclass(frozen=True)
class _ShardedDescent:
    """:class:`distreduce.coupling.descent.Descent` on shards: an iterate holds TᵀCT, which moves with the step."""

    problem: ShardedCoupling
    prototype_targets: Array | None

    def direction(self, at: Iterate) -> Direction:
        """One pass; TᵀCT and the value at `at` are computed afresh, so that roundings do not add up."""
        if at.ahead is not None:
            return at.ahead
        problem, T, q = self.problem, at.plan, column_mass(at.plan)
        held = problem.hold(T, self.prototype_targets)
        parts = problem.shards.collect(passes.Gradient(T, problem.weights, problem.fitted, held))
        across = passes.add_sparse([part.across for part in parts], len(q))
        transported = passes.add_sparse([part.transported for part in parts], len(q))
        transported = 0.5 * (transported + transported.T)  # symmetric but for rounding
        slope, vertex_slope, linear = np.add.reduce([part.sums for part in parts])
        value = linear + problem.alpha * problem.structure(q, transported)
        V = hard_plan(np.concatenate([part.cheapest for part in parts]), problem.weights, len(q))
        return Direction(Iterate(T, transported, value), V, slope - vertex_slope, across)

    def search(self, direction: Direction) -> tuple[float, Iterate]:
        """One pass, for VᵀCV. As a rule the step is 1: the pass is that of the next direction."""
        problem, at, V, across, gap = self.problem, direction.at, direction.vertex, direction.across, direction.gap
        assert across is not None
        ahead = self.direction(Iterate(V, np.empty(0), np.inf))
        end = ahead.at.product
        change = end - across - across.T + at.product  # (V − T)ᵀC(V − T), from the three matrices
        curvature = problem.alpha * problem.structure(column_mass(V) - column_mass(at.plan), change)
        step = exact_step(curvature, -gap)
        # TᵀCT after the step, by the same expansion.
        product = (1 - step) ** 2 * at.product + step * (1 - step) * (across + across.T) + step**2 * end
        value = at.value + step * (step * curvature - gap)
        return step, Iterate(move_towards(at.plan, V, step), product, value, ahead if step == 1.0 else None)


def _move_rows(problem: ShardedCoupling, T: Plan, transported: Array, tol: float) -> tuple[Plan, Array]:
    """Move rows to the prototypes where J falls by their exact changes, until that gains no more than `tol`.

    The changes are exact for one row at a time: when all moves together would not lower J, the better half is tried.
    """
    for _ in range(MAX_SWEEPS):
        held = problem.hold(T, _prototype_targets(problem.shards, T, problem.loss))
        parts = problem.shards.collect(passes.BestMoves(T, problem.weights, problem.fitted, held, problem.f2))
        moves = passes.ShardMoves(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        value = problem.alpha * problem.structure(column_mass(T), transported)
        least = tol * max(1.0, abs(value + float(moves.linear[:, 0].sum())))  # relative to J, as in the descent
        found = _best_subset(problem, T, value, moves, least)
        if found is None:
            break
        T, transported = found
    return T, transported


def _best_subset(
    problem: ShardedCoupling, T: Plan, structure: float, moves: passes.ShardMoves, least: float
) -> tuple[Plan, Array] | None:
    """The plan after the largest set of best moves that lowers J by more than `least`, with its TᵀCT; or None."""
    change, order = moves.change, np.argsort(moves.change, kind="stable")  # best moves first, of those that lower J
    n_moves = int(np.searchsorted(change[order], 0.0))
    for _ in range(MAX_HALVINGS):
        chosen = order[:n_moves]
        # Too little to gain, even if the moves did not interact.
        if n_moves == 0 or -change[chosen].sum() <= least:
            return None
        moved = move_to(T, chosen, moves.target, problem.weights)
        transported = transported_on_shards(problem.shards, moved)
        # The true change of J: moves of neighbours interact.
        after = problem.alpha * problem.structure(column_mass(moved), transported)
        if after + float(moves.linear[:, 1][chosen].sum()) < structure - least:
            return moved, transported
        n_moves //= 2  # the better half
    return None


def _prototype_targets(shards: Shards, plan: Plan, loss: BregmanLoss) -> Array | None:
    """g*(T) (m, c), from sums over the samples; None without targets."""
    table = shards.total(passes.TargetSums(plan, loss))
    return None if table.shape[1] == 0 else loss.from_sums(table[:, :-1], table[:, -1])

"""The coupling T over a sparse affinity in shards: the same descent as the dense solvers, with nothing n×m in memory.

A pass over the samples computes, row by row, (CT)_i from the plan of the neighbours, the gradient, the cheapest
prototype, and adds up the m×m matrices TᵀCT and VᵀCT. One more, light pass gives VᵀCV. The step along T + τ(V − T) is
then exact, from these three and the masses alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.coupling._shard_passes import (
    RowCosts,
    added,
    carried_by_shard,
    gradient_of_shard,
    moves_of_shard,
    plan_entries,
    structure_constant_of_shard,
    supervision_of_shard,
    target_sums_of_shard,
)
from distreduce.coupling.problem import column_mass, exact_step
from distreduce.coupling.products import hard_plan, rescale_rows
from distreduce.losses import BregmanLoss, SquaredLoss
from distreduce.sharding.shards import Shards

MAX_ITER, MAX_SWEEPS, MAX_HALVINGS = 2000, 50, 6


@dataclass(frozen=True)
class ShardedCoupling:
    r"""The BSFGW problem of :class:`distreduce.coupling.CouplingProblem`, semi-relaxed, over shards.

    Shards hold the parts "affinity" (:class:`GraphRows` of C) and "targets" (rows of Y, or None).

    Attributes
    ----------
    weights, f2, h2, loss, alpha
        As there.
    embedding, fitted, mu
        Z (m, p), KL (n, p) or None, and μ: the additional linear cost is (μ/2)|z_k − (KL)_i|².
    """

    shards: Shards
    weights: Array
    f2: Array
    h2: Array
    embedding: Array
    fitted: Array
    mu: float
    loss: BregmanLoss = SquaredLoss()
    alpha: float = 0.2

    def structure(self, mass: Array, transported: Array) -> float:
        """GW(T) without its constant, from q and TᵀCT (of a difference of plans as well)."""
        return float(mass @ self.f2 @ mass) - float((transported * self.h2).sum())

    def costs(self, held: Array | None) -> RowCosts:
        """The cost of every row at every prototype that does not come from GW, for prototype targets `held`."""
        return RowCosts(self.loss, 1 - self.alpha, held, self.embedding, self.mu)


@dataclass(frozen=True)
class _Pass:
    """What one pass found at T: the cheapest prototypes V, TᵀCT, VᵀCT, and ⟨·, T⟩, ⟨·, V⟩ of gradient and costs."""

    cheapest: NDArray[np.int32]
    transported: Array
    across: Array
    slope: Array
    linear: Array


def transported(shards: Shards, plan: sparse.csr_array) -> Array:
    """TᵀCT (m, m), exactly symmetric."""
    total = added(shards.collect(carried_by_shard, ["affinity"], plan_entries(plan), plan.shape[1], rows=[plan]))
    return 0.5 * (total + total.T)


def structure_constant_on_shards(shards: Shards, weights: Array, loss: Literal["kl", "square"]) -> float:
    r""":math:`\sum_{ij} f_1(C_{ij}) h_i h_j` over the entries of the part "affinity"; outside them f_1(0) = 0."""
    return sum(shards.collect(structure_constant_of_shard, ["affinity"], weights, loss, rows=[weights]), start=0.0)


def supervision(shards: Shards, plan: sparse.csr_array, loss: BregmanLoss) -> float:
    """Σ_ij L_s(y_i, g_j*(T)) T_ij; zero without targets."""
    held = _prototype_targets(shards, plan, loss)
    return (
        0.0 if held is None else float(sum(shards.collect(supervision_of_shard, ["targets"], loss, held, rows=[plan])))
    )


def solve_on_shards(
    problem: ShardedCoupling, initial: sparse.csr_array, *, tol: float = 1e-9
) -> tuple[sparse.csr_array, Array]:
    """Minimise J(T) over {T ≥ 0, T1 = h} from `initial`; T and TᵀCT.

    As in :func:`distreduce.coupling.solve_semirelaxed`: conditional gradient with the prototype targets held and then
    refreshed, then exact moves of single rows, here of many at once.
    """
    T, value, n_iter, converged = initial, np.inf, 0, False
    while n_iter < MAX_ITER and not converged:
        held = _prototype_targets(problem.shards, T, problem.loss)
        T, carried, new, steps = _descend(problem, T, held, MAX_ITER - n_iter, tol)
        converged = held is None or value - new <= tol * max(1.0, abs(new))
        value, n_iter = new, n_iter + steps
    return _move_rows(problem, rescale_rows(T, problem.weights), carried, tol)


def _descend(
    problem: ShardedCoupling, T: sparse.csr_array, held: Array | None, max_iter: int, tol: float
) -> tuple[sparse.csr_array, Array, float, int]:
    """T, TᵀCT, J with the targets held, and the number of steps; ends as the dense descent does."""
    value = np.inf
    for iteration in range(1, max_iter + 1):
        here = _gradient_pass(problem, T, held)
        q = column_mass(T)
        value = here.linear[0] + problem.alpha * problem.structure(q, here.transported)
        V = hard_plan(here.cheapest, problem.weights, len(q))
        gap = here.slope[0] - here.slope[1]
        if gap <= tol * max(1.0, abs(value)):
            return T, here.transported, value, iteration
        end = transported(problem.shards, V)
        curvature = problem.alpha * problem.structure(
            column_mass(V) - q, end - here.across - here.across.T + here.transported
        )
        step = exact_step(curvature, -gap)
        previous, value = value, value + step * (step * curvature - gap)
        T = V if step == 1.0 else sparse.csr_array((1 - step) * T + step * V)
        cross = here.across + here.across.T
        carried = (1 - step) ** 2 * here.transported + step * (1 - step) * cross + step**2 * end
        if step == 0 or previous - value <= tol * max(1.0, abs(value)):
            return T, carried, value, iteration
    return T, carried, value, max_iter


def _move_rows(
    problem: ShardedCoupling, T: sparse.csr_array, carried: Array, tol: float
) -> tuple[sparse.csr_array, Array]:
    """Move rows to the prototypes where J falls by their exact changes, until that gains no more than `tol`.

    The changes are exact for one row at a time: when all moves together would not lower J, the better half is tried.
    """
    for _ in range(MAX_SWEEPS):
        held = _prototype_targets(problem.shards, T, problem.loss)
        rows = [problem.weights, np.arange(T.shape[0]), T, problem.fitted]
        shared = (
            plan_entries(T),
            problem.f2 @ column_mass(T),
            problem.f2,
            problem.h2,
            problem.alpha,
            problem.costs(held),
        )
        parts = problem.shards.collect(moves_of_shard, ["affinity", "targets"], *shared, rows=rows)
        target, change, linear = (np.concatenate(column) for column in zip(*parts, strict=True))
        value = problem.alpha * problem.structure(column_mass(T), carried)
        least = tol * max(1.0, abs(value + float(linear[:, 0].sum())))
        found = _best_subset(problem, T, value, target, change, linear[:, 1], least)
        if found is None:
            break
        T, carried = found
    return T, carried


def _best_subset(
    problem: ShardedCoupling,
    T: sparse.csr_array,
    structure: float,
    target: NDArray[np.int32],
    change: Array,
    linear_change: Array,
    least: float,
) -> tuple[sparse.csr_array, Array] | None:
    """The plan after the largest set of best moves that lowers J by more than `least`, with its TᵀCT; or None."""
    order = np.argsort(change, kind="stable")
    n_moves = int(np.searchsorted(change[order], 0.0))
    for _ in range(MAX_HALVINGS):
        chosen = order[:n_moves]
        if n_moves == 0 or -change[chosen].sum() <= least:
            return None
        moved = _with_rows_moved(T, chosen, target, problem.weights)
        carried = transported(problem.shards, moved)
        after = problem.alpha * problem.structure(column_mass(moved), carried)
        if after + float(linear_change[chosen].sum()) < structure - least:
            return moved, carried
        n_moves //= 2
    return None


def _with_rows_moved(
    T: sparse.csr_array, rows: NDArray[np.intp], target: NDArray[np.int32], weights: Array
) -> sparse.csr_array:
    """T with the given rows sent, with all their mass, to their targets."""
    stays = np.ones(T.shape[0])
    stays[rows] = 0.0
    moved = sparse.csr_array((weights[rows], (rows, target[rows])), shape=T.shape)
    kept = sparse.csr_array(sparse.diags_array(stays) @ T)
    kept.eliminate_zeros()
    return sparse.csr_array(kept + moved)


def _gradient_pass(problem: ShardedCoupling, T: sparse.csr_array, held: Array | None) -> _Pass:
    shared = (plan_entries(T), problem.f2 @ column_mass(T), problem.h2, problem.alpha, problem.costs(held))
    parts = problem.shards.collect(
        gradient_of_shard, ["affinity", "targets"], *shared, rows=[problem.weights, T, problem.fitted]
    )
    carried = added([part[1] for part in parts])
    return _Pass(
        cheapest=np.concatenate([part[0] for part in parts]),
        transported=0.5 * (carried + carried.T),
        across=added([part[2] for part in parts]),
        slope=sum(part[3][:2] for part in parts),
        linear=sum(part[3][2:] for part in parts),
    )


def _prototype_targets(shards: Shards, plan: sparse.csr_array, loss: BregmanLoss) -> Array | None:
    """g*(T) (m, c), from sums over the samples; None without targets."""
    table = shards.total(target_sums_of_shard, ["targets"], loss, rows=[plan])
    return None if table.shape[1] == 0 else loss.from_sums(table[:, :-1], table[:, -1])

"""The passes of a T-step over the rows of one shard, block by block, and the compiled loops inside them.

A row of CT touches few prototypes. The loops add it up in one buffer of m numbers, remember what they touched, and
clear only that. They take named tuples: C is the rows of the shard, T the whole plan, and `own` its rows of the shard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from distreduce._utils.numerics import blocks, sq_distances
from distreduce._utils.threads import KERNEL, PART
from distreduce._utils.typing import Array, Index
from distreduce.coupling.descent import changes
from distreduce.coupling.problem import PlanEntries, structure_terms, subtract
from distreduce.losses import BregmanLoss, InnerLoss, supervised_rows
from distreduce.sharding.shards import PlanPass, Result, Shard, ShardPass

Entries: TypeAlias = tuple[Index, Array]  # of an m×m matrix that is mostly zero: their places in it, and values
BLOCK_ROWS = 2048  # rows whose costs (rows, m) are in memory at once


@dataclass(frozen=True)
class RowCosts:
    """The linear cost (1−α) L_s(y_i, g_k) + (μ/2)|z_k − (KL)_i|², for one block of rows at a time."""

    loss: BregmanLoss
    share: float
    prototype_targets: Array | None
    prototypes: Array
    mu: float

    def __call__(self, Y: Array | None, fitted: Array) -> Array:
        """Costs (rows, m) for rows of Y and of KL."""
        cost = 0.5 * self.mu * sq_distances(fitted, self.prototypes)
        if self.prototype_targets is not None and Y is not None:
            cost += self.share * self.loss.cost(np.asarray(Y, dtype=np.float64), self.prototype_targets)
        return cost

    def blocks(self, Y: Array | None, fitted: Array) -> Iterator[tuple[int, Array]]:
        """The first row of every block, and its costs."""
        for rows in blocks(len(fitted), BLOCK_ROWS):
            yield rows.start, self(None if Y is None else Y[rows], fitted[rows])


class ShardGradient(NamedTuple):
    """What :class:`Gradient` finds on one shard."""

    cheapest: NDArray[np.int32]  # prototype of every row: the vertex V
    transported: Entries  # the shard's share of TᵀCT
    across: Entries  # the shard's share of VᵀCT
    sums: Array  # ⟨∇J, T⟩, ⟨∇J, V⟩ and ⟨cost, T⟩


class ShardMoves(NamedTuple):
    """The best move of every row: its target, the exact change of J, and (cost now, change of the cost)."""

    target: NDArray[np.int32]
    change: Array
    linear: Array


@dataclass(frozen=True)
class HeldProblem:
    """J around a plan T, with the prototype targets held; f2 and h2 as in `problem.structure_matrices`."""

    plan: PlanEntries  # all of T: a row needs the plan of its neighbours, wherever they are
    f2q: Array
    h2: Array
    alpha: float
    costs: RowCosts  # of every row at every prototype, all that does not come from GW


@dataclass(frozen=True)
class _HeldPass(PlanPass[Result]):
    """A pass around a plan T; `fitted` are the shard's rows of KL."""

    reads = ("affinity", "targets")
    per_sample = ("own", "weights", "fitted")
    weights: Array
    fitted: Array
    held: HeldProblem


class Gradient(_HeldPass[ShardGradient]):
    """Gradient of J, row by row, and the cheapest vertex."""

    def __call__(self, shard: Shard) -> ShardGradient:
        held, m = self.held, len(self.held.f2q)
        cheapest, sums = np.empty(len(shard), dtype=np.int32), np.zeros(3)
        transported, across = np.zeros((m, m)), np.zeros((m, m))
        own, base, slopes = PlanEntries.of(self.own), 2 * held.alpha * held.f2q, 2 * held.alpha * held.h2
        for first, cost in held.costs.blocks(shard.targets, self.fitted):
            terms = (self.weights, cost, base, slopes)
            _gradient_rows(first, shard.affinity, held.plan, own, *terms, cheapest, transported, across, sums)
        return ShardGradient(cheapest, _compress(transported), _compress(across), sums)


@dataclass(frozen=True)
class BestMoves(_HeldPass[ShardMoves]):
    """The best move of every row, with all its mass, to one prototype."""

    f2: Array

    def __call__(self, shard: Shard) -> ShardMoves:
        held, n = self.held, len(shard)
        found = ShardMoves(np.empty(n, dtype=np.int32), np.empty(n), np.empty((n, 2)))
        own, terms = PlanEntries.of(self.own), (held.f2q, self.f2, held.h2, held.alpha)
        for first, cost in held.costs.blocks(shard.targets, self.fitted):
            _best_moves(first, shard.affinity, held.plan, own, self.weights, shard.rows.start, cost, *terms, *found)
        return found


@dataclass(frozen=True)
class Transported(PlanPass[Entries]):
    """The shard's share of TᵀCT; `plan` is all of T."""

    reads = ("affinity",)
    plan: PlanEntries

    def __call__(self, shard: Shard) -> Entries:
        transported = np.zeros((self.own.shape[1], self.own.shape[1]))
        _transport(shard.affinity, self.plan, PlanEntries.of(self.own), transported)
        return _compress(transported)


@dataclass(frozen=True)
class StructureConstant(ShardPass[float]):
    """The shard's share of Σ_ij f_1(C_ij) h_i h_j; `own` are its rows of the weights h."""

    reads = ("affinity",)
    per_sample = ("own",)
    own: Array
    weights: Array
    loss: InnerLoss

    def __call__(self, shard: Shard) -> float:
        rows = shard.affinity
        terms = structure_terms(rows.values.astype(np.float64), self.loss) * self.weights[rows.indices]
        # No row is empty, as reduceat requires: each holds its own sample.
        return float(np.add.reduceat(terms, rows.indptr[:-1]) @ self.own)


@dataclass(frozen=True)
class TargetSums(PlanPass[Array]):
    """The shard's share of Tᵀs(Y) and, in the last column, of the supervised mass; no columns without targets."""

    reads = ("targets",)
    loss: BregmanLoss

    def __call__(self, shard: Shard) -> Array:
        if shard.targets is None:
            return np.empty((self.own.shape[1], 0))  # no columns: the shards can still be added up
        Y = np.asarray(shard.targets, dtype=np.float64)
        return np.column_stack([self.own.T @ self.loss.embed(Y), self.own.T @ supervised_rows(Y).astype(float)])


@dataclass(frozen=True)
class Supervision(PlanPass[float]):
    """The shard's share of Σ_ij L_s(y_i, g_j) T_ij."""

    reads = ("targets",)
    loss: BregmanLoss
    prototype_targets: Array

    def __call__(self, shard: Shard) -> float:
        Y = shard.targets
        if Y is None:
            return 0.0
        # Block by block: the costs of all rows would be an array (rows, m).
        costs = (
            (rows, self.loss.cost(np.asarray(Y[rows], dtype=np.float64), self.prototype_targets))
            for rows in blocks(len(shard), BLOCK_ROWS)
        )
        return float(sum(self.own[rows].multiply(cost).sum() for rows, cost in costs))


def _compress(M: Array) -> Entries:
    """The entries that are not zero: near samples share shards and prototypes, so that they are few."""
    places = np.flatnonzero(M)
    return places, M.ravel()[places]


def add_sparse(parts: list[Entries], m: int) -> Array:
    """Sum (m, m) of the shards' matrices, in the order of the shards."""
    total = np.zeros(m * m)
    for places, values in parts:
        total[places] += values
    return total.reshape(m, m)


@njit(**PART)
def _gather(i, C, T, row, touched):  # type: ignore[no-untyped-def]
    """Add (CT)_i to `row`, which is zero; return how many prototypes it touched."""
    count = 0
    for entry in range(C.indptr[i], C.indptr[i + 1]):
        j, c = C.indices[entry], np.float64(C.values[entry])
        # Very small affinities have been flushed to zero.
        if c == 0.0:
            continue
        for t in range(T.indptr[j], T.indptr[j + 1]):
            k, part = T.indices[t], c * T.data[t]
            if part == 0.0:  # an underflow would leave row[k] zero, and k would be noted again beyond the end
                continue
            if row[k] == 0.0:
                touched[count] = k
                count += 1
            row[k] += part
    return count


@njit(**PART)
def _diagonal(i, C, number):  # type: ignore[no-untyped-def]
    """C_ii of row i of the shard; `number` is its number over all shards."""
    for entry in range(C.indptr[i], C.indptr[i + 1]):
        if C.indices[entry] == number:
            return np.float64(C.values[entry])
    return 0.0


@njit(**PART)
def _add(factor, row, touched, count, total):  # type: ignore[no-untyped-def]
    for t in range(count):
        total[touched[t]] += factor * row[touched[t]]


@njit(**KERNEL)
def _transport(C, T, own, transported):  # type: ignore[no-untyped-def]
    """Add TᵀCT of these rows to `transported`."""
    m = transported.shape[0]
    row, touched = np.zeros(m), np.empty(m, dtype=np.int32)
    for i in range(len(own.indptr) - 1):
        count = _gather(i, C, T, row, touched)
        for t in range(own.indptr[i], own.indptr[i + 1]):
            _add(own.data[t], row, touched, count, transported[own.indices[t]])
        row[touched[:count]] = 0.0  # clean for the next row, without a pass over all m


@njit(**KERNEL)
def _gradient_rows(first, C, T, own, weights, cost, base, slopes, cheapest, transported, across, sums):  # type: ignore[no-untyped-def]
    """Gradient and cheapest prototype of the rows of a block that starts at `first`; adds to the last three arguments.

    The gradient is cost + 2α f2 q − 2α (CT)_i h2, with `base` = 2α f2 q and `slopes` = 2α h2.
    """
    m = len(base)
    row, touched, gradient = np.zeros(m), np.empty(m, dtype=np.int32), np.empty(m)
    for r in range(cost.shape[0]):
        i = first + r
        count = _gather(i, C, T, row, touched)
        # The gradient of this row. CT changes it for the touched prototypes only.
        for k in range(m):
            gradient[k] = cost[r, k] + base[k]
        for t in range(count):
            subtract(row[touched[t]], slopes[touched[t]], gradient)
        best = gradient.argmin()  # the vertex V sends all of the row to its cheapest prototype
        cheapest[i] = best
        # Sums of T, over the prototypes that the row uses.
        for t in range(own.indptr[i], own.indptr[i + 1]):
            k, share = own.indices[t], own.data[t]
            _add(share, row, touched, count, transported[k])
            sums[0] += share * gradient[k]
            sums[2] += share * cost[r, k]
        _add(weights[i], row, touched, count, across[best])  # the same sums of V
        sums[1] += weights[i] * gradient[best]
        row[touched[:count]] = 0.0


@njit(**KERNEL)
def _best_moves(  # type: ignore[no-untyped-def]
    first, C, T, own, weights, start, cost, f2q, f2, h2, alpha, target, change, linear
):
    """The prototype to which each row of a block would best move with all its mass, and what that changes."""
    m = len(f2q)
    row, touched = np.zeros(m), np.empty(m, dtype=np.int32)
    slope, across, gains = np.empty(m), np.empty(m), np.empty(m)
    for r in range(cost.shape[0]):
        i = first + r
        count = _gather(i, C, T, row, touched)
        # C_ii, and the cost of the row now.
        diagonal, now = _diagonal(i, C, start + i), 0.0
        for t in range(own.indptr[i], own.indptr[i + 1]):
            now += own.data[t] * cost[r, own.indices[t]]
        for k in range(m):
            slope[k] = cost[r, k] + 2 * alpha * f2q[k]
        for t in range(count):
            subtract(2 * alpha * row[touched[t]], h2[touched[t]], slope)
        best = changes(diagonal, weights[i], f2, h2, alpha, own, i, slope, across, gains)
        target[i], change[i] = best, gains[best]
        linear[i, 0], linear[i, 1] = now, weights[i] * cost[r, best] - now
        row[touched[:count]] = 0.0

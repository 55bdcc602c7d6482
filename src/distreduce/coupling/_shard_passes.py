"""What a T-step asks of one shard: functions that travel to it, block by block of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.coupling._row_loops import best_moves, carry, descend_rows
from distreduce.coupling.problem import structure_terms
from distreduce.kernels import sq_distances
from distreduce.losses import BregmanLoss, supervised_rows
from distreduce.sharding.graph import GraphRows

BLOCK_ROWS = 2048


@dataclass(frozen=True)
class RowCosts:
    """(1−α) L_s(y_i, g_k) + (μ/2)|z_k − (KL)_i|², a block of rows at a time."""

    loss: BregmanLoss
    share: float
    targets: Array | None
    embedding: Array
    mu: float

    def __call__(self, Y: Array | None, fitted: Array) -> Array:
        """Costs (rows, m) for rows of Y and of KL."""
        cost = 0.5 * self.mu * sq_distances(fitted, self.embedding)
        if self.targets is not None and Y is not None:
            cost += self.share * self.loss.cost(np.asarray(Y, dtype=np.float64), self.targets)
        return cost


def plan_entries(plan: sparse.csr_array) -> tuple[Any, Any, Any]:
    """The whole plan as small arrays for the shards: a row needs the plan of its neighbours, wherever they are."""
    return plan.indptr.astype(np.int64), plan.indices.astype(np.int32), plan.data


def added(parts: list[sparse.csr_array]) -> Array:
    """The shards' m×m matrices, which are sparse, added in the order of the shards."""
    total = parts[0].toarray()
    for part in parts[1:]:
        rows = np.flatnonzero(np.diff(part.indptr))
        total[rows] += part[rows].toarray()
    return np.asarray(total)


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK_ROWS):
        yield slice(start, min(n, start + BLOCK_ROWS))


def gradient_of_shard(
    affinity: GraphRows,
    Y: Array | None,
    weights: Array,
    own: sparse.csr_array,
    fitted: Array,
    plan: tuple[Any, Any, Any],
    f2q: Array,
    h2: Array,
    alpha: float,
    costs: RowCosts,
) -> tuple[NDArray[np.int32], sparse.csr_array, sparse.csr_array, Array]:
    """Cheapest prototypes of the shard's rows, its shares of TᵀCT and VᵀCT, and (⟨∇,T⟩, ⟨∇,V⟩, ⟨cost,T⟩, ⟨cost,V⟩)."""
    m = len(f2q)
    cheapest, sums = np.empty(len(weights), dtype=np.int32), np.zeros(4)
    carried, across = np.zeros((m, m)), np.zeros((m, m))
    entries = plan_entries(own)
    for rows in _blocks(len(weights)):
        cost = costs(None if Y is None else Y[rows], fitted[rows])
        descend_rows(
            rows.start, *affinity, *plan, *entries, weights, cost, 2 * alpha * f2q, 2 * alpha * h2,
            cheapest, carried, across, sums,
        )  # fmt: skip
    return cheapest, sparse.csr_array(carried), sparse.csr_array(across), sums


def moves_of_shard(
    affinity: GraphRows,
    Y: Array | None,
    weights: Array,
    numbers: NDArray[np.intp],
    own: sparse.csr_array,
    fitted: Array,
    plan: tuple[Any, Any, Any],
    f2q: Array,
    f2: Array,
    h2: Array,
    alpha: float,
    costs: RowCosts,
) -> tuple[NDArray[np.int32], Array, Array]:
    """The best move of every row, the exact change of J by it, and (cost now, change of the cost) of the row."""
    n = len(weights)
    target, change, linear = np.empty(n, dtype=np.int32), np.empty(n), np.empty((n, 2))
    entries = plan_entries(own)
    for rows in _blocks(n):
        cost = costs(None if Y is None else Y[rows], fitted[rows])
        best_moves(
            rows.start, *affinity, *plan, *entries, weights, numbers, cost, f2q, f2, h2, alpha, target, change,
            linear,
        )  # fmt: skip
    return target, change, linear


def carried_by_shard(
    affinity: GraphRows, own: sparse.csr_array, plan: tuple[Any, Any, Any], m: int
) -> sparse.csr_array:
    """The shard's share of TᵀCT."""
    carried = np.zeros((m, m))
    carry(*affinity, *plan, *plan_entries(own), carried)
    return sparse.csr_array(carried)


def structure_constant_of_shard(
    affinity: GraphRows, own: Array, weights: Array, loss: Literal["kl", "square"]
) -> float:
    """The shard's share of Σ_ij f_1(C_ij) h_i h_j."""
    terms = structure_terms(affinity.values.astype(np.float64), loss) * weights[affinity.indices]
    return float(np.add.reduceat(terms, affinity.indptr[:-1]) @ own)


def target_sums_of_shard(Y: Array | None, own: sparse.csr_array, loss: BregmanLoss) -> Array:
    """The shard's share of Tᵀ s(Y) and, in the last column, of the supervised mass; no columns without targets."""
    if Y is None:
        return np.empty((own.shape[1], 0))
    values = np.asarray(Y, dtype=np.float64)
    return np.column_stack([own.T @ loss.embed(values), own.T @ supervised_rows(values).astype(float)])


def supervision_of_shard(Y: Array, own: sparse.csr_array, loss: BregmanLoss, held: Array) -> float:
    """The shard's share of Σ_ij L_s(y_i, g_j) T_ij."""
    blocks = _blocks(own.shape[0])
    return float(
        sum(own[rows].multiply(loss.cost(np.asarray(Y[rows], dtype=np.float64), held)).sum() for rows in blocks)
    )

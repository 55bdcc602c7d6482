"""The T-step's problem: plans T (n, m) as sparse arrays, and the value and gradient of BSFGW in T.

BSFGW is the barycentric supervised fused Gromov-Wasserstein problem of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.threads import KERNEL, PART, SERIAL, Workers, too_few_to_compile
from distreduce._utils.typing import Array, Index, Plan
from distreduce.losses import BregmanLoss, InnerLoss, SquaredLoss

ROWS_PER_CHUNK = 128
PRODUCT_COLUMNS = 2048  # of C, whose sum over the rows of a prototype stays in the cache


class PlanEntries(NamedTuple):
    """The arrays of a sparse plan, as the compiled loops take them."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: Array

    @classmethod
    def of(cls, plan: Plan) -> PlanEntries:
        # SciPy chooses the type of indices by size; the loops are compiled for one type.
        return cls(plan.indptr.astype(np.int64), plan.indices.astype(np.int32), plan.data)


def hard_plan(assignment: NDArray[np.integer], weights: Array, n_prototypes: int) -> Plan:
    """The vertex of U(h) that sends row i, with all its mass, to prototype ``assignment[i]``."""
    return sparse.csr_array((weights, assignment, np.arange(len(weights) + 1)), shape=(len(weights), n_prototypes))


def plan_from_array(plan: Array, weights: Array) -> Plan:
    """A plan from shares (n, m), rows of any positive sum, or from an assignment (n,) of samples to prototypes."""
    if plan.ndim == 1:
        return hard_plan(plan.astype(np.intp), weights, int(plan.max()) + 1)
    return rescale_rows(sparse.csr_array(plan), weights)


def move_to(T: Plan, rows: Index, target: NDArray[np.integer], weights: Array) -> Plan:
    """T with the given rows sent, with all their mass, to their targets."""
    moves = np.bincount(rows, minlength=T.shape[0]) > 0
    if T.nnz == T.shape[0]:  # hard, as a rule
        assignment, borders = np.where(moves, target, T.indices), np.arange(T.shape[0] + 1, dtype=np.int32)
        return sparse.csr_array((weights, assignment.astype(np.int32), borders), shape=T.shape)
    kept, moved = T.copy(), sparse.csr_array((weights[rows], (rows, target[rows])), shape=T.shape)
    kept.data[np.repeat(moves, np.diff(T.indptr))] = 0.0
    kept.eliminate_zeros()
    return sparse.csr_array(kept + moved)


def rescale_rows(plan: Plan, weights: Array) -> Plan:
    """The plan with row sums of exactly `weights` again: convex combinations drift by rounding."""
    plan = plan.copy()
    plan.data *= np.repeat(weights / np.asarray(plan.sum(axis=1)).ravel(), np.diff(plan.indptr))
    return plan


def column_mass(T: Plan) -> Array:
    """q = Tᵀ1."""
    return np.bincount(T.indices, T.data, minlength=T.shape[1])


def row_indices(T: Plan) -> Index:
    """The row of every entry."""
    return np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))


def inner(T: Plan, M: Array) -> float:
    """⟨T, M⟩ = Σ_ik T_ik M_ik for a dense M, read only where T has entries."""
    return float(T.data @ M[row_indices(T), T.indices])


def affinity_times_plan(affinity: NDArray[np.floating], plan: Plan, workers: Workers = SERIAL) -> Array:
    """C·T in O(n·nnz(T)), for a symmetric C: for a hard plan, sums of its rows grouped by prototype."""
    out = np.zeros(plan.shape)  # float64, even if C is float32
    used, sums = sum_rows(affinity, row_indices(plan), plan.indices, plan.data, workers)
    out[:, used] = sums.T
    return out


def sum_rows(
    affinity: NDArray[np.floating], rows: Index, prototypes: Index, data: Array, workers: Workers = SERIAL
) -> tuple[Index, Array]:
    """Σ_i T_ik C_i (·, n) for every prototype k that has an entry (i, k, T_ik), and these prototypes.

    C is symmetric: these are the columns of C·T, for all entries of a plan, or for those in which two plans differ.
    """
    order = np.argsort(prototypes, kind="stable")  # by prototype: the sum over its rows stays in the cache
    used, first = np.unique(prototypes[order], return_index=True)
    rows, data, borders, n = rows[order], data[order], np.append(first, len(order)), len(affinity)
    if too_few_to_compile(n):
        return used, np.asarray(sparse.csr_array((data, rows, borders), shape=(len(used), n)) @ affinity)
    sums = np.zeros((len(used), n))
    workers.run(lambda chunk, _: _add_chunk(chunk, affinity, borders, rows, data, sums), -(-n // PRODUCT_COLUMNS))
    return used, sums


@njit(**KERNEL)
def _add_chunk(chunk, C, borders, rows, data, sums):  # type: ignore[no-untyped-def]
    """Some columns of ``sum_rows``, four rows of C at a time: half of the time is loads and stores of the sum."""
    own = slice(chunk * PRODUCT_COLUMNS, min((chunk + 1) * PRODUCT_COLUMNS, C.shape[0]))
    for k in range(len(borders) - 1):
        total, entry = sums[k, own], borders[k]
        while entry + 4 <= borders[k + 1]:
            r, d = rows[entry : entry + 4], data[entry : entry + 4]
            A, B, D, E = C[r[0], own], C[r[1], own], C[r[2], own], C[r[3], own]
            for b in range(len(total)):
                total[b] += (d[0] * A[b] + d[1] * B[b]) + (d[2] * D[b] + d[3] * E[b])
            entry += 4
        for last in range(entry, borders[k + 1]):
            subtract(-data[last], C[rows[last], own], total)


@njit(**PART)
def subtract(factor, row, total):  # type: ignore[no-untyped-def]
    """total −= factor · row, without a temporary array."""
    for b in range(row.shape[0]):
        total[b] -= factor * row[b]


def structure_matrices(embedding_affinity: Array, loss: InnerLoss) -> tuple[Array, Array]:
    r"""The two m×m matrices f2 and h2 that the inner loss needs of the prototypes' affinity :math:`\bar C`.

    Both losses split as :math:`L_u(a, b) = f_1(a) + f_2(b) - a\,h_2(b)`, so that

    .. math:: GW(T) = \mathrm{const}(C) + q^\top f_2(\bar C)\,q - \langle T^\top C T, h_2(\bar C)\rangle .

    KL, :math:`a\log(a/b) - a + b`: :math:`f_2 = b,\ h_2 = \log b`.
    Square, :math:`(a-b)^2`: :math:`f_2 = b^2,\ h_2 = 2b`.
    """
    if loss == "kl":
        return embedding_affinity, np.log(embedding_affinity)
    return embedding_affinity**2, 2 * embedding_affinity


def structure_constant(affinity: NDArray[np.floating], weights: Array, loss: InnerLoss) -> float:
    r""":math:`\sum_{ij} f_1(C_{ij}) h_i h_j`, the part of GW that no coupling changes; without an n×n copy."""
    total = 0.0
    for start in range(0, len(weights), ROWS_PER_CHUNK):
        rows = slice(start, start + ROWS_PER_CHUNK)
        terms = structure_terms(np.asarray(affinity[rows], dtype=np.float64), loss)  # C may be float32
        total += float(weights[rows] @ (terms @ weights))
    return total


def structure_terms(affinity: Array, loss: InnerLoss) -> Array:
    r""":math:`f_1` of :func:`structure_matrices`, by entry: :math:`a\log a - a` for KL, :math:`a^2` for square."""
    # 0 log 0 = 0.
    return affinity * np.log(np.where(affinity > 0, affinity, 1.0)) - affinity if loss == "kl" else affinity**2


@dataclass(frozen=True)
class CouplingProblem:
    r"""What the T-step minimises over the plans with row masses h.

    .. math::
        J(T) = (1-\alpha)\sum_{ij} L_s(y_i, g_j^*(T))\,T_{ij} + \alpha\,GW(T) + \langle M, T\rangle
    """

    affinity: NDArray[np.floating]  # C (n, n), symmetric, of the inputs
    weights: Array  # h (n,), the mass of every row of T
    f2: Array  # (m, m), as h2: see structure_matrices
    h2: Array
    targets: Array | None = None  # Y (n, c); a row of NaN carries no supervision. None: no supervision at all
    loss: BregmanLoss = SquaredLoss()
    alpha: float = 0.2
    linear: Array | None = None  # M (n, m), an additional cost that is linear in T (the out-of-sample map's)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.weights), len(self.f2)

    def supervision(self, T: Plan, columns: Index | slice = slice(None)) -> Array:
        """Columns of L_s(y_i, g_j*(T)) (n, m), by the envelope theorem also the gradient of the supervision term."""
        if self.targets is None:
            return np.zeros(self.shape)[:, columns]
        return self.loss.cost(self.targets, self.loss.prototype_targets(T, self.targets)[columns])

    def linear_cost(self, T: Plan, columns: Index | slice = slice(None)) -> Array:
        """The gradient's part that does not come from GW: columns of (1−α) L_s(y_i, g_j*(T)) + M_ij."""
        if self.targets is None and self.linear is not None:
            return self.linear[:, columns]
        cost = self.supervision(T, columns)
        cost *= 1 - self.alpha
        if self.linear is not None:
            cost += self.linear[:, columns]
        return cost

    def with_targets_held(self, T: Plan) -> CouplingProblem:
        """The problem with the prototype targets kept at g*(T): an upper bound on J that touches it at T."""
        # With its targets held the supervision is linear in T: it becomes part of M.
        return self if self.targets is None else replace(self, targets=None, linear=self.linear_cost(T))

    def value(self, T: Plan, affinity_T_h2: Array) -> float:
        """J(T) without the constant of GW, which is then qᵀ f2 q − ⟨T, C T h2⟩, from C T h2."""
        q = column_mass(T)
        return inner(T, self.linear_cost(T)) + self.alpha * (float(q @ self.f2 @ q) - inner(T, affinity_T_h2))

    def gradient(self, T: Plan, affinity_T_h2: Array) -> Array:
        """dJ/dT = (1−α) L_s + M + 2α (1 (f2 q)ᵀ − C T h2), from C T h2."""
        # The factor 2 holds because C, f2 and h2 are symmetric.
        gradient = (self.f2 @ column_mass(T))[None, :] - affinity_T_h2
        gradient *= 2 * self.alpha
        gradient += self.linear_cost(T)
        return gradient

    def curvature(self, T: Plan, V: Plan, affinity_delta_h2: Array) -> float:
        r"""Coefficient a of τ² in J along :math:`T + \tau\Delta`, Δ = V − T, from CΔh2.

        The prototype targets are held where they are, which bounds the supervision term from above (it is a minimum
        over them), so that a descent of the model is a descent of J.
        """
        q = column_mass(V) - column_mass(T)
        # GW is quadratic in T: its value at the difference of two plans is the coefficient of τ².
        return self.alpha * (float(q @ self.f2 @ q) + inner(T, affinity_delta_h2) - inner(V, affinity_delta_h2))


@dataclass(frozen=True)
class CouplingResult:
    """A coupling T, with C·T·h2 and the linear cost (n, m) there, J without its constant, and how the solver ended."""

    plan: Plan
    product: Array
    linear_cost: Array
    value: float
    converged: bool

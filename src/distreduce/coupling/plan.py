"""Plans T (n, m) as sparse arrays: hard plans, marginals, and the product C·T."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Plan

ROWS_PER_CHUNK = 128


def hard_plan(assignment: NDArray[np.integer], weights: Array, n_prototypes: int) -> Plan:
    """The vertex of U(h) that sends row i, with all its mass, to prototype ``assignment[i]``."""
    n = len(weights)
    return sparse.csr_array((weights, assignment, np.arange(n + 1)), shape=(n, n_prototypes))


def plan_from_array(plan: Array, weights: Array) -> Plan:
    """A plan from shares (n, m), rows of any positive sum, or from an assignment (n,) of samples to prototypes."""
    if plan.ndim == 1:
        return hard_plan(plan.astype(np.intp), weights, int(plan.max()) + 1)
    return rescale_rows(sparse.csr_array(plan), weights)


def rescale_rows(plan: Plan, weights: Array) -> Plan:
    """The plan with row sums of exactly `weights` again: convex combinations drift by rounding."""
    plan = plan.copy()
    plan.data *= np.repeat(weights / np.asarray(plan.sum(axis=1)).ravel(), np.diff(plan.indptr))
    return plan


def column_mass(T: Plan) -> Array:
    """q = Tᵀ1."""
    return np.asarray(T.sum(axis=0)).ravel()


def affinity_times_plan(affinity: NDArray[np.floating], plan: Plan, workers: Workers = SERIAL) -> Array:
    """C·T in O(n·nnz(T)): for a hard plan, column sums of C grouped by prototype."""
    out = np.zeros(plan.shape)  # float64, even if C is float32
    n_chunks = -(-len(affinity) // ROWS_PER_CHUNK)
    workers.run(_affinity_rows, n_chunks, affinity, plan.indptr, plan.indices, plan.data, out)
    return out


@njit(nogil=True, cache=True)
def _affinity_rows(chunk, n_chunks, C, indptr, indices, data, out):  # type: ignore[no-untyped-def]
    n = C.shape[0]
    for i in range(chunk, n, n_chunks):
        row, sums = C[i], out[i]
        for j in range(n):
            for entry in range(indptr[j], indptr[j + 1]):  # a single one if the plan is hard
                sums[indices[entry]] += row[j] * data[entry]

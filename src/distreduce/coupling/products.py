"""Products of the dense input affinity with a sparse plan, without any other n×n array."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array

ROWS_PER_CHUNK = 128


@njit(nogil=True, cache=True)
def _affinity_rows(chunk, n_chunks, C, indptr, indices, data, out):  # type: ignore[no-untyped-def]
    n = C.shape[0]
    for i in range(chunk, n, n_chunks):
        row, sums = C[i], out[i]
        for j in range(n):
            for entry in range(indptr[j], indptr[j + 1]):
                sums[indices[entry]] += row[j] * data[entry]


def affinity_times_plan(affinity: NDArray[np.floating], plan: sparse.csr_array, workers: Workers = SERIAL) -> Array:
    """C·T in O(n·nnz(T)): for a hard plan, column sums of C grouped by prototype."""
    out = np.zeros(plan.shape)
    n_chunks = -(-len(affinity) // ROWS_PER_CHUNK)
    workers.run(_affinity_rows, n_chunks, affinity, plan.indptr, plan.indices, plan.data, out)
    return out


def hard_plan(assignment: NDArray[np.integer], weights: Array, n_prototypes: int) -> sparse.csr_array:
    """The vertex of U(h) that sends row i, with all its mass, to prototype ``assignment[i]``."""
    n = len(weights)
    return sparse.csr_array((weights, assignment, np.arange(n + 1)), shape=(n, n_prototypes))


def rescale_rows(plan: sparse.csr_array, weights: Array) -> sparse.csr_array:
    """The plan with row sums made exactly `weights` again: convex combinations drift by rounding."""
    plan = plan.copy()
    plan.data *= np.repeat(weights / np.asarray(plan.sum(axis=1)).ravel(), np.diff(plan.indptr))
    return plan

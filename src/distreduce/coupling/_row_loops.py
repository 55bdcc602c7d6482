"""Compiled loops over the rows of a sparse affinity: (CT)_i from the neighbours' plan, and what follows from it.

A row of CT touches few prototypes. The loops add into one buffer of m numbers, remember what they touched, and clear
only that.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from distreduce._utils.numba import KERNEL
from distreduce.coupling.row_moves import changes, subtract


@njit(**KERNEL)
def _gather(i, indptr, indices, values, plan_indptr, plan_indices, plan_data, row, touched):  # type: ignore[no-untyped-def]
    """Add (CT)_i to `row`, which is zero; returns how many prototypes it touched."""
    count = 0
    for entry in range(indptr[i], indptr[i + 1]):
        j, c = indices[entry], np.float64(values[entry])
        if c == 0.0:
            continue
        for t in range(plan_indptr[j], plan_indptr[j + 1]):
            k = plan_indices[t]
            if row[k] == 0.0:
                touched[count] = k
                count += 1
            row[k] += c * plan_data[t]
    return count


@njit(**KERNEL)
def _diagonal(i, indptr, indices, values, number):  # type: ignore[no-untyped-def]
    """C_ii, of the row with that number over all shards."""
    for entry in range(indptr[i], indptr[i + 1]):
        if indices[entry] == number:
            return np.float64(values[entry])
    return 0.0


@njit(**KERNEL)
def _add(factor, row, touched, count, total):  # type: ignore[no-untyped-def]
    for t in range(count):
        total[touched[t]] += factor * row[touched[t]]


@njit(**KERNEL)
def carry(  # type: ignore[no-untyped-def]
    indptr, indices, values, plan_indptr, plan_indices, plan_data, own_indptr, own_indices, own_data, carried
):
    """carried += TᵀCT of these rows."""
    m = carried.shape[0]
    row, touched = np.zeros(m), np.empty(m, dtype=np.int32)
    for i in range(len(own_indptr) - 1):
        count = _gather(i, indptr, indices, values, plan_indptr, plan_indices, plan_data, row, touched)
        for t in range(own_indptr[i], own_indptr[i + 1]):
            _add(own_data[t], row, touched, count, carried[own_indices[t]])
        row[touched[:count]] = 0.0


@njit(**KERNEL)
def descend_rows(  # type: ignore[no-untyped-def]
    first, indptr, indices, values, plan_indptr, plan_indices, plan_data, own_indptr, own_indices, own_data,
    weights, cost, base, slopes, cheapest, carried, across, sums,
):  # fmt: skip
    """Gradient and cheapest prototype of the rows of a block, which starts at `first`; adds to the last three.

    The gradient is cost + 2α f2 q − 2α (CT)_i h2, with `base` = 2α f2 q and `slopes` = 2α h2.
    """
    m = len(base)
    row, touched, gradient = np.zeros(m), np.empty(m, dtype=np.int32), np.empty(m)
    for r in range(cost.shape[0]):
        i = first + r
        count = _gather(i, indptr, indices, values, plan_indptr, plan_indices, plan_data, row, touched)
        for k in range(m):
            gradient[k] = cost[r, k] + base[k]
        for t in range(count):
            subtract(row[touched[t]], slopes[touched[t]], gradient)
        best = gradient.argmin()
        cheapest[i] = best
        for t in range(own_indptr[i], own_indptr[i + 1]):
            k, share = own_indices[t], own_data[t]
            _add(share, row, touched, count, carried[k])
            sums[0] += share * gradient[k]
            sums[2] += share * cost[r, k]
        _add(weights[i], row, touched, count, across[best])
        sums[1] += weights[i] * gradient[best]
        sums[3] += weights[i] * cost[r, best]
        row[touched[:count]] = 0.0


@njit(**KERNEL)
def best_moves(  # type: ignore[no-untyped-def]
    first, indptr, indices, values, plan_indptr, plan_indices, plan_data, own_indptr, own_indices, own_data,
    weights, numbers, cost, f2q, f2, h2, alpha, target, change, linear,
):  # fmt: skip
    """The prototype to which each row of a block would best go as a whole, and what that changes."""
    m = len(f2q)
    row, touched, plan_row = np.zeros(m), np.empty(m, dtype=np.int32), np.zeros(m)
    for r in range(cost.shape[0]):
        i = first + r
        count = _gather(i, indptr, indices, values, plan_indptr, plan_indices, plan_data, row, touched)
        own, now = _diagonal(i, indptr, indices, values, numbers[i]), 0.0
        for t in range(own_indptr[i], own_indptr[i + 1]):
            plan_row[own_indices[t]] = own_data[t]
            now += own_data[t] * cost[r, own_indices[t]]
        gains = changes(own, weights[i], f2, h2, alpha, cost[r], plan_row, row, f2q)
        best = gains.argmin()
        target[i], change[i] = best, gains[best]
        linear[i, 0], linear[i, 1] = now, weights[i] * cost[r, best] - now
        row[touched[:count]] = 0.0
        plan_row[own_indices[own_indptr[i] : own_indptr[i + 1]]] = 0.0

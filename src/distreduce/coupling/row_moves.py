"""Exact moves of single rows, after the conditional gradient.

The gradient counts the row itself where it now is: C_ii, the largest entry of a row of C, favours staying. The exact
change of J takes into account that the row itself moves. It is to the conditional gradient what Hartigan's step is to
Lloyd's in k-means, and lowers J by 3 to 4 % on entropic affinities with the KL loss.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit
from scipy import sparse

from distreduce._utils.numba import KERNEL
from distreduce._utils.threads import SERIAL, Workers
from distreduce.coupling.plan import affinity_times_plan
from distreduce.coupling.problem import CouplingProblem, CouplingResult

MAX_SWEEPS = 50
# A move must lower J by this share of it: smaller gains are rounding, and moves could cycle.
LEAST_GAIN = 1e-12


def move_rows(problem: CouplingProblem, found: CouplingResult, *, workers: Workers = SERIAL) -> CouplingResult:
    """Sweep until no row lowers J by moving with all its mass; every sweep refreshes the prototype targets."""
    # Dense copies: a sweep changes single rows of both.
    T, CT, moved = found.plan.toarray(), found.affinity_plan.copy(), False
    least = LEAST_GAIN * max(1.0, abs(found.value))
    for _ in range(MAX_SWEEPS):
        cost = problem.linear_cost(sparse.csr_array(T))
        f2q = problem.f2 @ T.sum(axis=0)  # afresh in every sweep: within one, moves update it and its roundings add up
        constants = (problem.affinity, problem.weights, problem.f2, problem.h2, problem.alpha, cost, least)
        if _sweep(*constants, T, CT, f2q) == 0:
            break
        moved = True
    if not moved:
        return found
    plan = sparse.csr_array(T)
    CT = affinity_times_plan(problem.affinity, plan, workers)  # afresh, without the roundings of all the moves
    return replace(found, plan=plan, affinity_plan=CT, value=problem.value(plan, CT))


@njit(**KERNEL)
def _sweep(C, h, f2, h2, alpha, cost, least, T, CT, f2q):  # type: ignore[no-untyped-def]
    """Move every row that gains, and update T, C·T and f2·q; return the number of moves."""
    moves = 0
    for i in range(len(h)):
        change = changes(C[i, i], h[i], f2, h2, alpha, cost[i], T[i], CT[i], f2q)
        target = change.argmin()
        if change[target] < -least:
            moves += 1
            # Apply the move: its row d of the difference changes T, q and CT.
            for k in range(len(f2)):
                d = (h[i] if k == target else 0.0) - T[i, k]
                if d != 0.0:
                    T[i, k] += d
                    f2q += d * f2[k]
                    for j in range(len(h)):
                        CT[j, k] += d * C[i, j]  # C is symmetric: row i instead of column i
    return moves


@njit(**KERNEL)
def subtract(factor, row, total):  # type: ignore[no-untyped-def]
    """total −= factor · row, without a temporary array."""
    for b in range(row.shape[0]):
        total[b] -= factor * row[b]


@njit(**KERNEL)
def changes(own, h, f2, h2, alpha, cost, row, CT, f2q):  # type: ignore[no-untyped-def]
    """J(row → h e_b) − J for every prototype b: with d = h e_b − row, ⟨∇J, d⟩ + α dᵀ(f2 − C_ii h2) d."""
    m = len(row)
    slope, across, constant = cost + 2 * alpha * f2q, np.zeros(m), 0.0
    # `slope` becomes ∇J of the row, `across` (f2 − C_ii h2) row.
    for l in range(m):
        if CT[l] != 0.0:
            subtract(2 * alpha * CT[l], h2[l], slope)
        if row[l] != 0.0:
            across += row[l] * (f2[l] - own * h2[l])
    # What does not depend on the target b.
    for l in range(m):
        if row[l] != 0.0:
            constant += row[l] * (alpha * across[l] - slope[l])
    change = np.empty(m)
    for b in range(m):
        change[b] = h * (slope[b] + alpha * (h * (f2[b, b] - own * h2[b, b]) - 2 * across[b])) + constant
    return change

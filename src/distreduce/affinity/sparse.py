"""Symmetric entropic affinity (SEA) on a sparse graph of neighbours: C_X for more samples than an n×n matrix allows.

P_ij lives on the entries of the graph only. The formulas are those of the dense loops (:mod:`.dual`,
:mod:`.symmetric`), row by row. What the entries of a row need of the other samples is first gathered side by side:
the arithmetic then runs over contiguous numbers, which is SIMD code, and what is known of one sample lies in one place,
so that an entry misses the cache once and not once per vector.

The sums of a row depend on that row alone: neither threads nor the borders of the shards change a bit of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import sparse

from distreduce._utils.threads import ELEMENTWISE, KERNEL, PART, lowest_exponent
from distreduce._utils.typing import Array
from distreduce.affinity.dual import ConcaveDual, DualPoint, fill_row, row_hessian, row_sums
from distreduce.affinity.neighbours import keep_neighbours, whole_graph
from distreduce.affinity.newton import balance, solve
from distreduce.affinity.symmetric import (
    START_TOLERANCE,
    AffinitySolution,
    RowBandwidths,
    as_weights,
    check_perplexity,
    solve_row,
    warn_about_residual,
)
from distreduce.exceptions import InvalidInputError
from distreduce.sharding.cells import Probes
from distreduce.sharding.shards import GraphRows, Result, Shard, ShardPass, Shards, local_shards

# Enough weight in every row is necessary, not sufficient: many samples may all need the mass of the same few.
_MORE_NEIGHBOURS = " Where many share few, there may be no solution: raise the number of neighbours (affinity)."
# How a fit solves for the affinity of a graph of neighbours, which is an approximation by itself: to row masses within
# half a per cent, with bandwidths that hubs cannot take to zero.
ON_A_GRAPH: dict[str, Any] = {"tol": 5e-3, "least_bandwidth": 0.3, "most_passes": 60}
BALANCING_PASSES = 30
# The search for a bandwidth always starts here, unlike in the dense loops: a row must not depend on its shard.
_LOG_BANDWIDTH_GUESS = -1.0


def keep_sparse_affinity(
    shards: Shards,
    weights: ArrayLike | None,
    perplexity: float,
    *,
    tol: float = 1e-5,
    max_iter: int = 100,
    least_bandwidth: float = 0.0,
    most_passes: float = np.inf,
) -> AffinitySolution:
    r"""Symmetric entropic affinity of weighted samples, P zero outside the entries of a symmetric graph.

    minimise Σ_ij w_i w_j P_ij D_ij over P = Pᵀ with Σ_j w_j P_ij = 1 and −Σ_j w_j P_ij log P_ij ≥ log ξ in every row,
    all sums over the graph's entries. On the complete graph this is ``symmetric_entropic_affinity``.

    Parameters are those of the dense function, and

    shards : Shards
        With the part "graph", :class:`GraphRows` of squared distances D: a symmetric pattern, equal values at both ends
        of an edge, the diagonal included with distance zero. P is kept as the part "affinity", in the same pattern.
    least_bandwidth : float
        Lower bound of γ_i, relative to the bandwidth that row i would have by itself. In many dimensions a graph has
        hubs, samples that thousands have as a neighbour; their constraint is slack, and the search for all γ_i = 0
        among them took 850 passes for 100,000 samples, against 130 down to 0.3.
    most_passes : float
        Passes over the graph after which Newton's method begins no further step. Where it has not met `tol` by then,
        only the masses of the rows are balanced to one: bandwidths are kept, and entropies are not enforced.
    """
    w = as_weights(weights, int(shards.bounds[-1]))
    check_perplexity(perplexity, w)
    _check_reach(shards, w, perplexity)
    # Start from the bandwidths that the rows would have by themselves.
    rows = sparse_row_bandwidths(shards, w, perplexity, START_TOLERANCE)
    # Units and start as in the dense solver.
    unit = float(np.median(rows.scale))
    dual = SparseDual(w, float(np.log(perplexity)), unit, shards)
    bounds = (least_bandwidth, most_passes)
    point, residual = solve(dual, rows.gamma / unit, -rows.log_partition, rows.scale / unit, tol, max_iter, *bounds)
    found, converged = residual, residual <= tol
    # Out of passes: balance the masses, and leave bandwidths and entropies as they are.
    if not converged and dual.n_evaluations >= most_passes:
        point = balance(dual, point, tol, BALANCING_PASSES)
        residual = float(np.abs(point.mass - 1.0).max())  # of the masses alone: entropies are not enforced now
        converged = residual <= 10 * tol
    if not converged:
        warn_about_residual(found, tol, dual.n_evaluations, _MORE_NEIGHBOURS)
    # P in the pattern and the dtype of the distances.
    samples = np.stack([point.gamma, point.mu], axis=1)
    shards.keep("affinity", _Affinity(samples, samples, dual.factor))
    return AffinitySolution(unit * point.gamma, unit * point.mu, residual, dual.n_evaluations, converged)


def neighbour_affinity(features: Any, weights: Array, perplexity: float) -> sparse.csr_array:
    """Sparse affinity (n, n) of samples in memory, as a fit on shards computes it.

    The perplexity is lowered to a third of the total weight where the samples are few.
    """
    n = len(weights)
    # A single shard and a single cell: the search is exact.
    one_cell = Probes(np.zeros((1, features.shape[1])), np.array([np.inf]))
    shards = local_shards({"features": features, "cells": np.zeros(n, dtype=np.int32)}, bounds=np.array([0, n]))
    perplexity = min(perplexity, max(weights.sum() / 3, 1.0))
    # Three times the perplexity, as the message of _check_reach recommends.
    keep_neighbours(shards, min(n - 1, math.ceil(3 * perplexity)), one_cell)
    keep_sparse_affinity(shards, weights, perplexity, **ON_A_GRAPH)
    return whole_graph(shards, "affinity")


def _check_reach(shards: Shards, weights: Array, perplexity: float) -> None:
    """A row over entries of total weight W has a perplexity of at most W."""
    least = min(shards.collect(_LeastRowWeight(weights)))
    if least < perplexity * (1.0 - 1e-12):  # equal is allowed, up to rounding
        raise InvalidInputError(
            f"perplexity is {perplexity:g}, but a sample and its neighbours weigh only {least:g}; "
            "raise the number of neighbours (affinity), to three times the perplexity or more, or lower the perplexity."
        )


@dataclass(frozen=True)
class _LeastRowWeight(ShardPass[float]):
    """The smallest weight of a sample and its neighbours."""

    reads = ("graph",)
    weights: Array

    def __call__(self, shard: Shard) -> float:
        # No row is empty, as reduceat requires: each holds its own sample.
        return float(np.add.reduceat(self.weights[shard.graph.indices], shard.graph.indptr[:-1]).min())


@dataclass
class SparseDual(ConcaveDual):
    """The dual over the distances in the part "graph" of every shard."""

    shards: Shards

    def _row_sums(self, gamma: Array, mu: Array) -> Array:
        # One row per sample, so that a neighbour's numbers lie side by side.
        samples = np.stack([self.weights, gamma, mu], axis=1)
        return np.concatenate(self.shards.collect(_DualSums(samples, samples, self.factor)), axis=1)

    def _hessian_sums(self, point: DualPoint, direction: Array) -> Array:
        samples = np.stack([self.weights, point.gamma, point.mu, *direction], axis=1)
        return np.concatenate(self.shards.collect(_HessianSums(samples, samples, self.factor)), axis=1)


def sparse_row_bandwidths(shards: Shards, weights: Array, perplexity: float, tol: float) -> RowBandwidths:
    """Bandwidths γ_i such that the entropy of every row over its entries is log ξ within ``tol`` nats."""
    parts = shards.collect(_Bandwidths(weights, float(np.log(perplexity)), tol))
    gamma, log_partition, scale, slack = np.concatenate(parts, axis=1)
    return RowBandwidths(gamma, log_partition, scale, slack > 0.0)


@dataclass(frozen=True)
class _GraphPass(ShardPass[Result]):
    """A pass over the graph; `own` are the shard's rows of `samples`, and the distances are multiplied by `factor`."""

    reads = ("graph",)
    per_sample = ("own",)
    own: Array
    samples: Array
    factor: float


class _DualSums(_GraphPass[Array]):
    """Row sums of the dual."""

    def __call__(self, shard: Shard) -> Array:
        return sparse_sums(shard.graph, self.factor, self.own, self.samples)


class _HessianSums(_GraphPass[Array]):
    """Row sums of a product with the Hessian."""

    def __call__(self, shard: Shard) -> Array:
        return sparse_hessian(shard.graph, self.factor, self.own, self.samples)


class _Affinity(_GraphPass[GraphRows]):
    """P on the entries of the graph."""

    def __call__(self, shard: Shard) -> GraphRows:
        lowest = lowest_exponent(shard.graph.values)
        values = sparse_affinity(shard.graph, self.factor, lowest, self.own, self.samples)
        return shard.graph._replace(values=values)  # the pattern is shared, not copied


@dataclass(frozen=True)
class _Bandwidths(ShardPass[Array]):
    """Bandwidths of the rows, each by itself."""

    reads = ("graph",)
    weights: Array
    log_perplexity: float
    tol: float

    def __call__(self, shard: Shard) -> Array:
        return sparse_bandwidths(shard.graph, self.weights[:, None], self.log_perplexity, self.tol)


@njit(**PART)
def gather(i: int, graph: GraphRows, samples: Array, out: Array) -> tuple[int, int, int]:
    """Copy the samples of row i, out[c, e] = samples[indices[e], c]; return its start, its stop and its length.

    Writes are contiguous, and all numbers of a sample share a cache line.
    """
    start, stop = graph.indptr[i], graph.indptr[i + 1]
    indices = graph.indices[start:stop]
    for c in range(samples.shape[1]):
        for e in range(len(indices)):
            out[c, e] = samples[indices[e], c]
    return start, stop, stop - start


@njit(**PART)
def room_for_row(indptr: Array, samples: Array) -> Array:
    """An array large enough for what ``gather`` copies for the longest row."""
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return np.empty((samples.shape[1], longest))


@njit(**KERNEL)
def sparse_sums(graph: GraphRows, factor: float, own: Array, samples: Array) -> Array:
    """``row_sums`` over the entries of every row; a sample is (w, γ, μ)."""
    sums = np.empty((5, len(own)))
    room = room_for_row(graph.indptr, samples)  # one buffer for all rows, instead of an allocation in each
    for i in range(len(own)):
        start, stop, k = gather(i, graph, samples, room)
        row, w, gamma, mu = graph.values[start:stop], room[0, :k], room[1, :k], room[2, :k]
        # 0.0 is the distance of the sample to itself.
        row_sums(row, 0.0, factor, own[i, 0], own[i, 1], own[i, 2], w, gamma, mu, sums[:, i])
    return sums


@njit(**KERNEL)
def sparse_hessian(graph: GraphRows, factor: float, own: Array, samples: Array) -> Array:
    """``row_hessian`` over the entries of every row; a sample is (w, γ, μ, dμ, dγ)."""
    sums = np.empty((2, len(own)))
    room = room_for_row(graph.indptr, samples)
    for i in range(len(own)):
        start, stop, k = gather(i, graph, samples, room)
        w, gamma, mu, d_mu, d_gamma = room[0, :k], room[1, :k], room[2, :k], room[3, :k], room[4, :k]
        sums[0, i], sums[1, i] = row_hessian(
            graph.values[start:stop], factor, own[i, 1], own[i, 2], own[i, 3], own[i, 4], w, gamma, mu, d_mu, d_gamma
        )
    return sums


@njit(**ELEMENTWISE)
def sparse_affinity(graph: GraphRows, factor: float, lowest: float, own: Array, samples: Array) -> Array:
    """P_ij for the entries of every row; a sample is (γ, μ)."""
    out = np.empty_like(graph.values)
    room = room_for_row(graph.indptr, samples)
    for i in range(len(own)):
        start, stop, k = gather(i, graph, samples, room)
        row, gamma, mu = graph.values[start:stop], room[0, :k], room[1, :k]
        fill_row(row, factor, own[i, 0], own[i, 1], gamma, mu, lowest, out[start:stop])
    return out


@njit(**KERNEL)
def sparse_bandwidths(graph: GraphRows, samples: Array, log_perplexity: float, tol: float) -> Array:
    """``solve_row`` over the entries of every row; a sample is (w,)."""
    n_rows = len(graph.indptr) - 1
    out = np.empty((4, n_rows))
    room = room_for_row(graph.indptr, samples)
    for i in range(n_rows):
        start, stop, k = gather(i, graph, samples, room)
        found = solve_row(graph.values[start:stop], room[0, :k], log_perplexity, _LOG_BANDWIDTH_GUESS, tol)
        out[0, i], out[1, i], out[2, i], out[3, i], _ = found
    return out

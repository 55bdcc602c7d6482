"""Symmetric entropic affinity (SEA) on a sparse graph of neighbours: C_X for more samples than an n×n matrix allows.

P_ij lives on the entries of the graph only. The formulas are those of the dense loops (:mod:`.dual`,
:mod:`.row_entropic`), row by row. What the entries of a row need of the other samples is first gathered side by side:
the arithmetic then runs over contiguous numbers, which is SIMD code, and what is known of one sample lies in one place,
so that an entry misses the cache once and not once per vector.

The sums of a row depend on that row alone: neither threads nor the borders of the shards change a bit of them.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import sparse

from distreduce._utils.numba import ELEMENTWISE, KERNEL, lowest_exponent
from distreduce._utils.typing import Array
from distreduce.affinity._inputs import as_weights, check_perplexity
from distreduce.affinity.dual import DualPoint, dual_point, fill_row, row_hessian, row_sums
from distreduce.affinity.neighbours import keep_neighbours, whole_graph
from distreduce.affinity.newton import balance, solve
from distreduce.affinity.row_entropic import RowBandwidths, solve_row
from distreduce.affinity.symmetric import START_TOLERANCE, AffinitySolution, convergence_message
from distreduce.exceptions import AffinityConvergenceWarning, InvalidInputError
from distreduce.sharding.cells import Probes
from distreduce.sharding.graph import GraphRows
from distreduce.sharding.shards import Result, Shard, ShardPass, Shards, local_shards

# Enough weight in every row is necessary, not sufficient: many samples may all need the mass of the same few.
_MORE_NEIGHBOURS = (
    " Where many samples share few neighbours there may be no solution: raise the number of neighbours (affinity)."
)
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

    Parameters
    ----------
    shards : Shards
        With the part "graph", :class:`GraphRows` of squared distances D: a symmetric pattern, equal values at both ends
        of an edge, the diagonal included with distance zero. P is kept as the part "affinity", in the same pattern.
    weights : array of shape (n,), optional
        Weights w of the samples, as counts; ones by default.
    perplexity : float
        Perplexity ξ, between 1 and the smallest weight Σ_j w_j of the entries of a row.
    tol : float
        Largest violation of the optimality conditions to accept.
    max_iter : int
        Newton iterations before giving up with an ``AffinityConvergenceWarning``.
    least_bandwidth : float
        Lower bound of γ_i, relative to the bandwidth that row i would have by itself. In many dimensions a graph has
        hubs, samples that thousands have as a neighbour; their constraint is slack, and the search for all γ_i = 0
        among them took 850 passes for 100,000 samples, against 130 down to 0.3.
    most_passes : float
        Passes over the graph after which Newton's method begins no further step. Where it has not met `tol` by then,
        only the masses of the rows are balanced to one: bandwidths are kept, and entropies are not enforced.

    Returns
    -------
    AffinitySolution
    """
    w = as_weights(weights, int(shards.bounds[-1]))
    check_perplexity(perplexity, w)
    _check_reach(shards, w, perplexity)
    # Start from the bandwidths that the rows would have by themselves.
    rows = sparse_row_bandwidths(shards, w, perplexity, START_TOLERANCE)
    # Units and start as in the dense solver.
    unit = float(np.median(rows.scale))
    dual = SparseDual(shards, w, float(np.log(perplexity)), unit)
    bounds = (least_bandwidth, most_passes)
    solution = solve(dual, rows.gamma / unit, -rows.log_partition, rows.scale / unit, tol, max_iter, *bounds)
    point, converged = solution.point, solution.converged
    # Out of passes: balance the masses, and leave bandwidths and entropies as they are.
    if not converged and dual.n_evaluations >= most_passes:
        point = balance(dual, point, tol, BALANCING_PASSES)
        converged = bool(np.abs(point.mass - 1.0).max() <= 10 * tol)
    if not converged:
        message = convergence_message(solution.kkt, tol, dual.n_evaluations)
        warnings.warn(message + _MORE_NEIGHBOURS, AffinityConvergenceWarning, stacklevel=2)
    dual.keep_affinity(point)
    # After balancing, entropies are not enforced: the residual is that of the masses.
    residual = solution.kkt if point is solution.point else float(np.abs(point.mass - 1.0).max())
    return AffinitySolution(unit * point.gamma, unit * point.mu, residual, dual.n_evaluations, converged)


def neighbour_affinity(features: Any, weights: Array, perplexity: float) -> sparse.csr_array:
    """Sparse affinity (n, n) of samples in memory, as a fit on shards computes it.

    The perplexity is lowered to a third of the total weight where the samples are few.
    """
    n = len(weights)
    # A single shard and a single cell: the search is exact.
    one_cell = Probes(np.zeros((1, features.shape[1])), np.array([n]), np.zeros((1, 1), dtype=np.int32))
    shards = local_shards({"features": features, "cells": np.zeros(n, dtype=np.int32)}, bounds=np.array([0, n]))
    perplexity = min(perplexity, max(weights.sum() / 3, 1.0))
    # Three times the perplexity, as the message of _check_reach recommends.
    keep_neighbours(shards, min(n - 1, math.ceil(3 * perplexity)), [[0]], one_cell)
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
class SparseDual:
    """The data of one problem: distances in the part "graph" of every shard. Counts the passes over them."""

    shards: Shards
    weights: Array
    log_perplexity: float
    scale: float
    n_evaluations: int = field(default=0)

    def evaluate(self, gamma: Array, mu: Array) -> DualPoint:
        """One pass over the entries: value, row sums and curvature at (γ, μ)."""
        self.n_evaluations += 1
        # One row per sample, so that a neighbour's numbers lie side by side.
        samples = np.stack([self.weights, gamma, mu], axis=1)
        parts = self.shards.collect(_DualSums(samples, samples, 2.0 / self.scale))
        return dual_point(self, gamma, mu, np.concatenate(parts, axis=1))

    def hessian_product(self, point: DualPoint, direction: Array) -> Array:
        """Hessian of −g at ``point`` times ``direction``, a (2, n) array of changes of μ and γ. One pass."""
        self.n_evaluations += 1
        samples = np.stack([self.weights, point.gamma, point.mu, *direction], axis=1)
        parts = self.shards.collect(_HessianSums(samples, samples, 2.0 / self.scale))
        return self.weights * np.concatenate(parts, axis=1)

    def keep_affinity(self, point: DualPoint) -> None:
        """Keep P as the part "affinity" of every shard, in the pattern and the dtype of the distances."""
        samples = np.stack([point.gamma, point.mu], axis=1)
        self.shards.keep("affinity", _Affinity(samples, samples, 2.0 / self.scale))


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
        return sparse_sums(*shard.graph, self.factor, self.own, self.samples)


class _HessianSums(_GraphPass[Array]):
    """Row sums of a product with the Hessian."""

    def __call__(self, shard: Shard) -> Array:
        return sparse_hessian(*shard.graph, self.factor, self.own, self.samples)


class _Affinity(_GraphPass[GraphRows]):
    """P on the entries of the graph."""

    def __call__(self, shard: Shard) -> GraphRows:
        lowest = lowest_exponent(shard.graph.values)
        values = sparse_affinity(*shard.graph, self.factor, lowest, self.own, self.samples)
        return shard.graph._replace(values=values)  # the pattern is shared, not copied


@dataclass(frozen=True)
class _Bandwidths(ShardPass[Array]):
    """Bandwidths of the rows, each by itself."""

    reads = ("graph",)
    weights: Array
    log_perplexity: float
    tol: float

    def __call__(self, shard: Shard) -> Array:
        return sparse_bandwidths(*shard.graph, self.weights[:, None], self.log_perplexity, self.tol)


@njit(**KERNEL)
def gather(indices: Array, samples: Array, out: Array) -> None:
    """out[c, e] = samples[indices[e], c]."""
    # Writes are contiguous, and all numbers of a sample share a cache line.
    for c in range(samples.shape[1]):
        for e in range(len(indices)):
            out[c, e] = samples[indices[e], c]


@njit(**KERNEL)
def room_for_row(indptr: Array, samples: Array) -> Array:
    """An array large enough for what ``gather`` copies for the longest row."""
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return np.empty((samples.shape[1], longest))


@njit(**KERNEL)
def sparse_sums(indptr: Array, indices: Array, distances: Array, factor: float, own: Array, samples: Array) -> Array:
    """``row_sums`` over the entries of every row; a sample is (w, γ, μ)."""
    n_rows = len(own)
    sums = np.empty((5, n_rows))
    room = room_for_row(indptr, samples)  # one buffer for all rows, instead of an allocation in each
    for i in range(n_rows):
        start, stop = indptr[i], indptr[i + 1]
        gather(indices[start:stop], samples, room)
        k = stop - start
        w, gamma, mu = room[0, :k], room[1, :k], room[2, :k]
        # 0.0 is the distance of the sample to itself.
        row_sums(distances[start:stop], 0.0, factor, own[i, 0], own[i, 1], own[i, 2], w, gamma, mu, sums[:, i])
    return sums


@njit(**KERNEL)
def sparse_hessian(indptr: Array, indices: Array, distances: Array, factor: float, own: Array, samples: Array) -> Array:
    """``row_hessian`` over the entries of every row; a sample is (w, γ, μ, dμ, dγ)."""
    n_rows = len(own)
    sums = np.empty((2, n_rows))
    room = room_for_row(indptr, samples)
    for i in range(n_rows):
        start, stop = indptr[i], indptr[i + 1]
        gather(indices[start:stop], samples, room)
        k = stop - start
        w, gamma, mu, d_mu, d_gamma = room[0, :k], room[1, :k], room[2, :k], room[3, :k], room[4, :k]
        sums[0, i], sums[1, i] = row_hessian(
            distances[start:stop], factor, own[i, 1], own[i, 2], own[i, 3], own[i, 4], w, gamma, mu, d_mu, d_gamma
        )
    return sums


@njit(**ELEMENTWISE)
def sparse_affinity(
    indptr: Array, indices: Array, distances: Array, factor: float, lowest: float, own: Array, samples: Array
) -> Array:
    """P_ij for the entries of every row; a sample is (γ, μ)."""
    out = np.empty_like(distances)
    room = room_for_row(indptr, samples)
    for i in range(len(own)):
        start, stop = indptr[i], indptr[i + 1]
        gather(indices[start:stop], samples, room)
        k = stop - start
        fill_row(distances[start:stop], factor, own[i, 0], own[i, 1], room[0, :k], room[1, :k], lowest, out[start:stop])
    return out


@njit(**KERNEL)
def sparse_bandwidths(
    indptr: Array, indices: Array, distances: Array, samples: Array, log_perplexity: float, tol: float
) -> Array:
    """``solve_row`` over the entries of every row; a sample is (w,)."""
    n_rows = len(indptr) - 1
    out = np.empty((4, n_rows))
    room = room_for_row(indptr, samples)
    for i in range(n_rows):
        start, stop = indptr[i], indptr[i + 1]
        gather(indices[start:stop], samples, room)
        k = stop - start
        found = solve_row(distances[start:stop], room[0, :k], log_perplexity, _LOG_BANDWIDTH_GUESS, tol)
        out[0, i], out[1, i], out[2, i], out[3, i], _ = found
    return out

"""The dual of the symmetric entropic affinity on a sparse graph in shards: P_ij lives on the graph's entries only.

The formulas are those of the dense loops (``_dual``, ``entropic``), row by row. What a row's entries need of the other
samples is first gathered side by side: the arithmetic then runs over contiguous numbers, which is SIMD code, and what
is known of one sample lies in one place, so that an entry misses the cache once and not once a vector.

A row's sums depend on that row alone: neither threads nor the borders of the shards change a bit of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from distreduce._utils.numba import ELEMENTWISE, KERNEL, lowest_exponent
from distreduce._utils.typing import Array
from distreduce.affinity.dual import DualPoint, dual_point, fill_row, row_hessian, row_sums
from distreduce.affinity.row_entropic import RowBandwidths, solve_row
from distreduce.sharding.graph import GraphRows
from distreduce.sharding.shards import Shard, ShardPass, Shards

# Starting every row's search from the same place, unlike the dense loops: a row must not know its shard.
_LOG_BANDWIDTH_GUESS = -1.0


@dataclass
class SparseDual:
    """The data of one problem, distances in the part "graph" of every shard, and a count of the passes over them."""

    shards: Shards
    weights: Array
    log_perplexity: float
    scale: float
    n_evaluations: int = field(default=0)

    def evaluate(self, gamma: Array, mu: Array) -> DualPoint:
        """One pass over the entries: value, row sums and curvature at (γ, μ)."""
        self.n_evaluations += 1
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
class _DualSums(ShardPass[Array]):
    """Row sums of the dual; `own` are the shard's rows of `samples`, and the distances are multiplied by `factor`."""

    reads = ("graph",)
    per_sample = ("own",)
    own: Array
    samples: Array
    factor: float

    def __call__(self, shard: Shard) -> Array:
        return sparse_sums(*shard.graph, self.factor, self.own, self.samples)


@dataclass(frozen=True)
class _HessianSums(_DualSums):
    """Row sums of a product with the Hessian."""

    def __call__(self, shard: Shard) -> Array:
        return sparse_hessian(*shard.graph, self.factor, self.own, self.samples)


@dataclass(frozen=True)
class _Affinity(ShardPass[GraphRows]):
    """P on the entries of the graph."""

    reads = ("graph",)
    per_sample = ("own",)
    own: Array
    samples: Array
    factor: float

    def __call__(self, shard: Shard) -> GraphRows:
        lowest = lowest_exponent(shard.graph.values)
        values = sparse_affinity(*shard.graph, self.factor, lowest, self.own, self.samples)
        return shard.graph._replace(values=values)


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
    for c in range(samples.shape[1]):
        for e in range(len(indices)):
            out[c, e] = samples[indices[e], c]


@njit(**KERNEL)
def room_for_row(indptr: Array, samples: Array) -> Array:
    """An array for what ``gather`` brings to the longest of the rows."""
    longest = 0
    for i in range(len(indptr) - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return np.empty((samples.shape[1], longest))


@njit(**KERNEL)
def sparse_sums(indptr: Array, indices: Array, distances: Array, factor: float, own: Array, samples: Array) -> Array:
    """``row_sums`` over the entries of every row; a sample is (w, γ, μ)."""
    n_rows = len(own)
    sums = np.empty((5, n_rows))
    room = room_for_row(indptr, samples)
    for i in range(n_rows):
        start, stop = indptr[i], indptr[i + 1]
        gather(indices[start:stop], samples, room)
        k = stop - start
        w, gamma, mu = room[0, :k], room[1, :k], room[2, :k]
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

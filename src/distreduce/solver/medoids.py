r"""Medoids: the sample that stands for a prototype is, of those the prototype stands for, the nearest to their mean.

.. math:: \mathrm{medoid}(k) = \arg\min_{i:\,T_{ik} > 0} |x_i - \bar x_k|^2, \quad \bar x_k = \sum_i T_{ik} x_i / q_k

Near in the data and not in the embedding, where samples of very different looks may share a place: with 20 medoids in
place of 1347 digits a nearest neighbour is right for 0.90 of new ones, against 0.72 with those nearest in the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.sharding.shards import Shard, ShardPass

BLOCK_NUMBERS = 4_000_000  # differences held at once


def prototype_sums(features: Any, plan: sparse.csr_array) -> Array:
    """TᵀX (m, d) of some rows."""
    sums = plan.T @ (features if sparse.issparse(features) else np.asarray(features))
    return np.asarray(sums.toarray() if sparse.issparse(sums) else sums, dtype=np.float64)


def prototype_means(sums: Array, mass: Array) -> Array:
    """x̄ (m, d); those of empty prototypes are zero."""
    return sums / np.where(mass > 0, mass, 1.0)[:, None]


@dataclass(frozen=True)
class PrototypeSums(ShardPass[Array]):
    """A shard's share of TᵀX."""

    reads = ("features",)
    per_sample = ("plan",)
    plan: sparse.csr_array

    def __call__(self, shard: Shard) -> Array:
        return prototype_sums(shard.features, self.plan)


@dataclass(frozen=True)
class DistancesToMeans(ShardPass[Array]):
    """|x_i − x̄_k|² for the entries of a shard's rows of T, in their order."""

    reads = ("features",)
    per_sample = ("plan",)
    plan: sparse.csr_array
    means: Array

    def __call__(self, shard: Shard) -> Array:
        return distances_to_means(shard.features, self.plan, self.means)


def distances_to_means(features: Any, plan: sparse.csr_array, means: Array) -> Array:
    """|x_i − x̄_k|² for the entries of T, in their order."""
    found, step = np.empty(plan.nnz), max(1, BLOCK_NUMBERS // means.shape[1])
    row_of = np.repeat(np.arange(plan.shape[0]), np.diff(plan.indptr))
    for start in range(0, plan.nnz, step):
        entries = slice(start, min(plan.nnz, start + step))
        rows = features[row_of[entries]]
        difference = (rows.toarray() if sparse.issparse(rows) else np.asarray(rows)) - means[plan.indices[entries]]
        found[entries] = np.einsum("ij,ij->i", difference, difference)
    return found


def distances_within(distances: Array, plan: sparse.csr_array) -> Array:
    """Σ_j T_jk d_ij²/q_k for the entries of T: the same, but for a number a prototype, from distances d (n, n)."""
    row_of = np.repeat(np.arange(plan.shape[0]), np.diff(plan.indptr))
    spread, mass = plan.T @ distances**2, np.asarray(plan.sum(axis=0)).ravel()
    return np.asarray(spread[plan.indices, row_of] / mass[plan.indices])


def nearest_members(plan: sparse.csr_array, distances: Array) -> NDArray[np.intp]:
    """For every prototype the row with the least distance among its entries, of equal ones the first; −1 if none."""
    row_of = np.repeat(np.arange(plan.shape[0]), np.diff(plan.indptr))
    order = np.lexsort((row_of, distances, plan.indices))
    used, first = np.unique(plan.indices[order], return_index=True)
    found = np.full(plan.shape[1], -1, dtype=np.intp)
    found[used] = row_of[order[first]]
    return found

r"""Medoids: among the samples of a prototype, the one nearest to their means of features and targets represents it.

.. math::
    \mathrm{medoid}(k) = \arg\min_{i:\,T_{ik} > 0} \frac{|x_i - \bar x_k|^2}{V_x} + \frac{|y_i - \bar y_k|^2}{V_y},
    \qquad \bar x_k = \sum_i T_{ik} x_i / q_k,\quad V_x = \sum_{ik} T_{ik} |x_i - \bar x_k|^2 / \sum_k q_k

and likewise for y; without targets, the first term alone. Nearest in the data and not in the embedding, where very
different samples may share a place: a nearest-neighbour classifier on 20 medoids of 1347 digits is right for 0.90 of
new ones, against 0.79 with those nearest in the plane. By the features alone, a sample whose target is unlike those of
its prototype could stand for it: of 20 medoids of diabetes, nearest neighbours then have R² −0.45 instead of 0.07.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from distreduce._utils.numerics import blocks, to_dense
from distreduce._utils.typing import Array, Index, Plan
from distreduce.coupling.problem import column_mass, row_indices
from distreduce.dependence import prototype_means
from distreduce.losses import supervised_rows
from distreduce.sharding.shards import PlanPass, Shard

BLOCK_NUMBERS = 4_000_000  # numbers in the differences that are held at once


def medoids(features: Any, plan: Plan, targets: Array | None = None, *, precomputed: bool = False) -> Index:
    """Return the row of the medoid of each prototype, −1 for unused ones, from features (n, d) or distances (n, n)."""
    if precomputed:
        distances = distances_within(features, plan)
    else:
        means = prototype_means(prototype_sums(features, plan), column_mass(plan))
        distances = distances_to_means(features, plan, means)
    return nearest_members(plan, distances, target_distances(plan, targets))


def target_distances(plan: Plan, targets: Array | None) -> Array | None:
    """Return |y_i − ȳ_k|² for the entries of T, with means of the known targets; NaN where a target is unknown."""
    if targets is None:
        return None
    known = supervised_rows(targets)
    counted = sparse.csr_array(sparse.diags_array(known.astype(float)) @ plan)
    means = prototype_means(prototype_sums(np.where(known[:, None], targets, 0.0), counted), column_mass(counted))
    return distances_to_means(targets, plan, means)


def prototype_sums(features: Any, plan: Plan) -> Array:
    """Return TᵀX (m, d) of some rows."""
    return to_dense(plan.T @ (features if sparse.issparse(features) else np.asarray(features)), np.float64)


def distances_to_means(features: Any, plan: Plan, means: Array) -> Array:
    """Return |x_i − x̄_k|² for the entries of T, in their order."""
    found, step = np.empty(plan.nnz), max(1, BLOCK_NUMBERS // means.shape[1])
    row_of = row_indices(plan)
    # By differences, not by expanded squares, which would cancel.
    for entries in blocks(plan.nnz, step):
        difference = to_dense(features[row_of[entries]]) - means[plan.indices[entries]]
        found[entries] = np.einsum("ij,ij->i", difference, difference)
    return found


@dataclass(frozen=True)
class PrototypeSums(PlanPass[Array]):
    """A shard's part of TᵀX."""

    reads = ("features",)

    def __call__(self, shard: Shard) -> Array:
        return prototype_sums(shard.features, self.own)


@dataclass(frozen=True)
class DistancesToMeans(PlanPass[Array]):
    """|x_i − x̄_k|² for the entries of a shard's rows of T."""

    reads = ("features",)
    means: Array

    def __call__(self, shard: Shard) -> Array:
        return distances_to_means(shard.features, self.own, self.means)


def distances_within(distances: Array, plan: Plan) -> Array:
    """Return |x_i − x̄_k|² for the entries of T, from mutual distances d (n, n).

    By Huygens, Σ_j T_jk d_ij²/q_k is |x_i − x̄_k|² plus the prototype's variance, whose mean over the prototype is twice
    that variance.
    """
    spread, mass, k = plan.T @ distances**2, column_mass(plan), plan.indices
    found = np.asarray(spread[k, row_indices(plan)] / mass[k])
    twice = np.bincount(k, plan.data * found, plan.shape[1]) / np.where(mass > 0, mass, 1.0)
    return np.asarray(found - 0.5 * twice[k])


def nearest_members(plan: Plan, distances: Array, of_targets: Array | None = None) -> Index:
    """Return for each prototype the nearest of its samples by features and targets, the first of ties, or −1."""
    if of_targets is not None:
        # A sample whose target is unknown is as far from the others as they are on average.
        relative = np.nan_to_num(_in_units_of_mean(of_targets, plan.data), nan=1.0)
        distances = _in_units_of_mean(distances, plan.data) + relative
    row_of = row_indices(plan)
    # By prototype, then distance, then row, so that ties go to the first row.
    order = np.lexsort((row_of, distances, plan.indices))
    used, first = np.unique(plan.indices[order], return_index=True)
    found = np.full(plan.shape[1], -1, dtype=np.intp)
    found[used] = row_of[order[first]]
    return found


def _in_units_of_mean(distances: Array, mass: Array) -> Array:
    """Divide by V, the mean over known entries; if all are zero, they stay zero."""
    known = np.isfinite(distances)
    mean = float(mass[known] @ distances[known]) / max(float(mass[known].sum()), np.finfo(float).tiny)
    return distances / mean if mean > 0 else distances

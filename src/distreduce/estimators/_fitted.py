"""A fit on distinct samples, told again for the rows the user gave: plan, prototypes, labels, medoids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.mapping import barycentres
from distreduce.sharding.merge import Merged


@dataclass(frozen=True)
class Outcome:
    """T with rows summing to one (n, m), Z (m, p), and the share of the total weight on each prototype (m,)."""

    coupling: sparse.csr_array
    prototypes: Array
    weights: Array


def expand(
    plan: sparse.csr_array,
    prototypes: Array,
    merged: Merged,
    sample_weight: Array,
    embedding: Array,
    one_to_one: bool,
) -> Outcome:
    """Give every row of the data its row of the plan, and if `one_to_one` (m = n) its own prototype.

    Rows of weight zero took no part in the fit: they go to the prototype nearest to where the map puts them.
    """
    shares = barycentres(plan, merged.weights)
    if one_to_one:
        return _expand_one_to_one(shares, prototypes, merged, sample_weight, embedding)
    left_out = np.flatnonzero(merged.group < 0)
    rows = shares[np.maximum(merged.group, 0)]
    if len(left_out):
        nearest = nearest_row(embedding[left_out], prototypes)
        entries = (np.ones(len(left_out)), (left_out, nearest))
        kept = sparse.diags_array((merged.group >= 0).astype(float)) @ rows
        rows = sparse.csr_array(kept + sparse.csr_array(entries, shape=rows.shape))
        rows.eliminate_zeros()
    mass = np.asarray(plan.sum(axis=0)).ravel()
    return Outcome(sparse.csr_array(rows), prototypes, mass / mass.sum())


def _expand_one_to_one(
    shares: sparse.csr_array, prototypes: Array, merged: Merged, sample_weight: Array, embedding: Array
) -> Outcome:
    """Copies of a sample get copies of its prototype; what a sample keeps for itself stays on its own copy."""
    n, group = len(sample_weight), merged.group
    used = group >= 0
    part = np.zeros(n)
    part[used] = sample_weight[used] / merged.weights[group[used]]
    membership = sparse.csr_array((part[used], (np.flatnonzero(used), group[used])), shape=(n, len(merged.rows)))
    own = np.ones(n)
    own[used] = shares.diagonal()[group[used]]
    others = shares - sparse.diags_array(shares.diagonal())
    spread = sparse.csr_array((membership > 0).astype(float) @ others @ membership.T)
    coupling = sparse.csr_array(sparse.diags_array(own) + spread)
    coupling.eliminate_zeros()
    placed = np.where(used[:, None], prototypes[np.maximum(group, 0)], embedding)
    return Outcome(coupling, placed, sample_weight / sample_weight.sum())


def nearest_row(points: Array, places: Array) -> NDArray[np.intp]:
    """For every point the number of the nearest place."""
    return np.asarray(((points[:, None, :] - places[None, :, :]) ** 2).sum(axis=2).argmin(axis=1))


def rows_of_medoids(
    found: NDArray[np.intp], merged: Merged, prototypes: Array, embedding: Array, one_to_one: bool
) -> NDArray[np.intp]:
    """Rows of the data for medoids among the distinct samples (−1: none).

    With a prototype a row (`one_to_one`), rows that stand for themselves are their own medoids, copies included. An
    unused prototype has the sample nearest to it in the embedding.
    """
    if one_to_one:
        group = merged.group
        others = (group >= 0) & (found[group] >= 0) & (found[group] != group)
        return np.where(others, merged.rows[found[group]], np.arange(len(group)))
    rows = merged.rows[found]
    for k in np.flatnonzero(found < 0):
        rows[k] = ((embedding - prototypes[k]) ** 2).sum(axis=1).argmin()
    return rows

"""Symmetric entropic affinity (SEA) on a sparse graph of neighbours: C_X of more samples than an n×n matrix allows."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from distreduce._utils.typing import Array
from distreduce.affinity._inputs import as_weights, check_perplexity
from distreduce.affinity.neighbours import keep_neighbours, whole_graph
from distreduce.affinity.newton import balance, solve
from distreduce.affinity.sparse_dual import SparseDual, sparse_row_bandwidths
from distreduce.affinity.symmetric import START_TOLERANCE, convergence_message
from distreduce.exceptions import AffinityConvergenceWarning, InvalidInputError
from distreduce.sharding.cells import Probes
from distreduce.sharding.shards import Shard, ShardPass, Shards, local_shards

# Enough weight in every row is necessary, not sufficient: many samples may all need the mass of the same few.
_MORE_NEIGHBOURS = (
    " Where many samples share few neighbours there may be no solution: raise the number of neighbours (affinity)."
)


# How a fit solves for the affinity of a graph of neighbours, which is an approximation by itself: to row masses within
# half a per cent, with bandwidths that hubs cannot take to zero.
ON_A_GRAPH: dict[str, Any] = {"tol": 5e-3, "least_bandwidth": 0.3, "most_passes": 60}
BALANCING_PASSES = 30


@dataclass(frozen=True)
class SparseAffinity:
    """How the symmetric entropic affinity that the shards keep was found.

    Attributes
    ----------
    gamma, mu : arrays of shape (n,)
        Dual variables: P_ij = exp((μ_i + μ_j − 2 D_ij) / (γ_i + γ_j)) on the graph's entries.
    residual, n_evaluations, converged
        As in :class:`distreduce.affinity.SymmetricAffinity`.
    """

    gamma: Array
    mu: Array
    residual: float
    n_evaluations: int
    converged: bool


def keep_sparse_affinity(
    shards: Shards,
    weights: ArrayLike | None,
    perplexity: float,
    *,
    tol: float = 1e-5,
    max_iter: int = 100,
    least_bandwidth: float = 0.0,
    most_passes: float = np.inf,
) -> SparseAffinity:
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
        the masses of the rows are brought to one with the bandwidths as they are, and entropies are what they are.

    Returns
    -------
    SparseAffinity
    """
    w = as_weights(weights, int(shards.bounds[-1]))
    check_perplexity(perplexity, w)
    _check_reach(shards, w, perplexity)
    rows = sparse_row_bandwidths(shards, w, perplexity, START_TOLERANCE)
    # Units and start as in the dense solver.
    unit = float(np.median(rows.scale))
    dual = SparseDual(shards, w, float(np.log(perplexity)), unit)
    bounds = (least_bandwidth, most_passes)
    solution = solve(dual, rows.gamma / unit, -rows.log_partition, rows.scale / unit, tol, max_iter, *bounds)
    point, converged = solution.point, solution.converged
    if not converged and dual.n_evaluations >= most_passes:
        point = balance(dual, point, tol, BALANCING_PASSES)
        converged = bool(np.abs(point.mass - 1.0).max() <= 10 * tol)
    if not converged:
        message = convergence_message(solution.kkt, tol, dual.n_evaluations)
        warnings.warn(message + _MORE_NEIGHBOURS, AffinityConvergenceWarning, stacklevel=2)
    dual.keep_affinity(point)
    residual = solution.kkt if point is solution.point else float(np.abs(point.mass - 1.0).max())
    return SparseAffinity(unit * point.gamma, unit * point.mu, residual, dual.n_evaluations, converged)


def neighbour_affinity(features: Any, weights: Array, perplexity: float) -> sparse.csr_array:
    """Sparse affinity (n, n) of samples in memory, as a fit on shards computes it.

    The perplexity is lowered to a third of the total weight where the samples are few.
    """
    n = len(weights)
    one_cell = Probes(np.zeros((1, features.shape[1])), np.array([n]), np.zeros((1, 1), dtype=np.int32))
    shards = local_shards({"features": features, "cells": np.zeros(n, dtype=np.int32)}, bounds=np.array([0, n]))
    perplexity = min(perplexity, max(weights.sum() / 3, 1.0))
    keep_neighbours(shards, min(n - 1, math.ceil(3 * perplexity)), [[0]], one_cell)
    keep_sparse_affinity(shards, weights, perplexity, **ON_A_GRAPH)
    return whole_graph(shards, "affinity")


def _check_reach(shards: Shards, weights: Array, perplexity: float) -> None:
    """A row over entries of total weight W has a perplexity of at most W."""
    least = min(shards.collect(_LeastRowWeight(weights)))
    if least < perplexity * (1.0 - 1e-12):
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
        return float(np.add.reduceat(self.weights[shard.graph.indices], shard.graph.indptr[:-1]).min())

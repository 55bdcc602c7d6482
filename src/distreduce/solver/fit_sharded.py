"""From samples in shards to a reduction: neighbours, sparse affinity, landmarks, starting points, the outer loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array
from distreduce.affinity.neighbours import keep_neighbours
from distreduce.affinity.sparse import ON_A_GRAPH, keep_sparse_affinity
from distreduce.coupling.initial import plan_from_array
from distreduce.coupling.initial_sharded import initial_plan_on_shards
from distreduce.coupling.problem import column_mass
from distreduce.embedding.initial import embedding_of_means
from distreduce.embedding.target_features import nystrom_features
from distreduce.mapping.landmarks import LandmarkProjection
from distreduce.sharding.order import Arrangement
from distreduce.sharding.row_file import RowFile, StoredRows
from distreduce.sharding.shards import LocalShards, Shards
from distreduce.solver.checkpoint import Checkpoint
from distreduce.solver.fit import Fitted, Recipe, Sample, untold
from distreduce.solver.loop import Record, alternate
from distreduce.solver.medoids import distances_to_means, nearest_members, prototype_means, prototype_sums
from distreduce.solver.sharded import ShardedSide

# Rows that are brought here for starting points and landmarks, and the numbers that they may have together.
DRAWN_ROWS, DRAWN_NUMBERS = 50_000, 50_000_000
# Landmarks of the out-of-sample map: fit and model grow with their number, not with that of the samples. New samples
# of a mixture in 50 dimensions found their class in 0.30 of the cases with 500 of 4000 samples, in 0.41 with 2000.
LANDMARKS = 2000
FILE_ROWS = 4096


@dataclass(frozen=True)
class LargeSample:
    """Distinct samples in shards.

    Attributes
    ----------
    shards : Shards
        With the parts "features", "cells", "targets" and "kernel_targets" (see :class:`distreduce.solver.fit.Sample`).
    weights : (n,) array
        Weights of all samples.
    drawn : Sample
        Some of the samples, drawn at random.
    probes, others : arrays, lists
        Which cells and shards the neighbours of a cell and of a shard are sought in.
    """

    shards: Shards
    weights: Array
    drawn: Sample
    probes: Any
    others: Sequence[Sequence[int]]


def in_shards(
    X: Any,
    unit: float,
    targets: Array | None,
    kernel_targets: Array | None,
    arranged: Arrangement,
    workers: Workers,
    *,
    stored: bool = False,
) -> LargeSample:
    """Samples of this process in shards; targets have one row a distinct sample, X one a row of the data.

    If `stored`, the arranged features lie in a temporary file: X may be a memory-mapped array larger than the memory.
    """
    merged, bounds = arranged.merged, arranged.bounds
    file = _arranged_file(X, unit, merged.rows) if stored else None
    parts = []
    for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
        rows = slice(start, stop)
        features = X[merged.rows[rows]] / unit if file is None else StoredRows(file, int(start), int(stop))
        parts.append(
            {
                "features": features,
                "cells": arranged.cells[rows],
                "targets": None if targets is None else targets[rows],
                "kernel_targets": None if kernel_targets is None else kernel_targets[rows],
            }
        )
    drawn = arranged.drawn[: DRAWN_ROWS if sparse.issparse(X) else drawn_rows(X.shape[1])]
    sample = Sample(
        X[merged.rows[drawn]] / unit,
        merged.weights[drawn],
        targets=None if targets is None else targets[drawn],
        kernel_targets=None if kernel_targets is None else kernel_targets[drawn],
    )
    return LargeSample(LocalShards(parts, bounds, workers), merged.weights, sample, arranged.probes, arranged.others)


def drawn_rows(n_features: int) -> int:
    """How many rows, of so many numbers each, are brought here: X may be larger than the memory by its width as well.

    Examples
    --------
    >>> drawn_rows(50), drawn_rows(5000), drawn_rows(10**6)
    (50000, 10000, 2000)
    """
    return max(LANDMARKS, min(DRAWN_ROWS, DRAWN_NUMBERS // n_features))


def _arranged_file(X: Any, unit: float, rows: NDArray[np.intp]) -> RowFile:
    """The distinct rows of X in their new order, in a file; X is read once, from its first row to its last."""
    file = RowFile(X.shape[1], X.dtype)
    place = np.full(X.shape[0], -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    for start in range(0, X.shape[0], FILE_ROWS):
        numbers = place[start : start + FILE_ROWS]
        block = X[start : start + FILE_ROWS][numbers >= 0]
        file.write(numbers[numbers >= 0], block / unit)
    return file


def neighbours_for(n_neighbors: int | None, perplexity: float, n: int) -> int:
    """Neighbours in the graph: as given, or three times the perplexity, beyond which affinities are next to nothing."""
    return min(n - 1, math.ceil(3 * perplexity) if n_neighbors is None else n_neighbors)


def fit_shards(
    sample: LargeSample,
    recipe: Recipe,
    n_neighbors: int,
    *,
    workers: Workers,
    random_state: np.random.RandomState,
    callback: Callable[[Record], object] | None = None,
    checkpoint: Checkpoint | None = None,
    stage: Callable[[str], None] = untold,
) -> Fitted:
    """Fit SDR (or, without targets, DistR) with fewer prototypes than samples, at a cost that grows as the samples."""
    shards, weights, drawn = sample.shards, sample.weights, sample.drawn
    stage("neighbours")
    keep_neighbours(shards, n_neighbors, sample.others, sample.probes)
    stage("affinity")
    keep_sparse_affinity(shards, weights, recipe.perplexity, **ON_A_GRAPH)
    shards.drop("graph")
    stage("start")
    plan = _plan(sample, recipe, random_state)
    start = embedding_of_means(_means(shards, plan), column_mass(plan), recipe.n_components, random_state)
    stage("map")
    landmarks = drawn.features[:LANDMARKS]
    projection = LandmarkProjection(shards, landmarks, recipe.input_kernel, weights, recipe.mu, recipe.map_reg)
    side = ShardedSide(shards, weights, projection, recipe.supervision, recipe.target_kernel, _features(drawn, recipe))
    stage("first embedding")
    options: dict[str, Any] = {"workers": workers, "callback": callback, "checkpoint": checkpoint}
    reduction = alternate(side, plan, start, recipe.settings, **options)
    plan, Z = reduction.plan, reduction.embedding
    return Fitted.of(reduction, recipe, landmarks, lambda: projection.coefficients(plan, Z), _medoids(shards, plan))


def _means(shards: Shards, plan: sparse.csr_array) -> Array:
    """Mean features (m, d) of the prototypes."""
    return prototype_means(shards.total(prototype_sums, ["features"], rows=[plan]), column_mass(plan))


def _medoids(shards: Shards, plan: sparse.csr_array) -> NDArray[np.intp]:
    """See :mod:`distreduce.solver.medoids`."""
    distances = shards.collect(distances_to_means, ["features"], _means(shards, plan), rows=[plan])
    return nearest_members(plan, np.concatenate(distances))


def _features(drawn: Sample, recipe: Recipe) -> Any:
    """Features of the target kernel, where the form of the dependence needs its whole matrix."""
    if recipe.target_kernel is None or drawn.kernel_targets is None or recipe.settings.target_form != "transport":
        return None
    return nystrom_features(drawn.kernel_targets, recipe.target_kernel)


def _plan(sample: LargeSample, recipe: Recipe, random_state: np.random.RandomState) -> sparse.csr_array:
    assert recipe.n_prototypes is not None
    if not isinstance(recipe.init, str):
        return plan_from_array(recipe.init, sample.weights)
    return initial_plan_on_shards(
        recipe.init,
        recipe.n_prototypes,
        shards=sample.shards,
        weights=sample.weights,
        sample=sample.drawn,
        target_kernel=recipe.target_kernel,
        perplexity=recipe.perplexity,
        random_state=random_state,
    )

"""The k nearest neighbours of every sample and the symmetric graph of them, on shards.

A sample is compared with the samples of the cells that it searches (:mod:`distreduce.sharding.cells`). The graph keeps
exactly the k nearest of these by (squared distance, sample number): neither threads nor the grouping of shards nor the
library behind the matrix products changes the result. In a single cell the search is exact; with cells it misses some
neighbours. Measured for n = 10⁶, d = 50, k = 90 with 16,000 candidates per sample, half of today's: it finds 0.99 of
them in a mixture of 200 Gaussians and 0.73 in one of 20, whose 50,000 samples each have no structure left that cells
could follow, in 0.12 to 0.15 ms of a core per sample. See results/benchmarks/scale.md for another mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.numerics import pair_distance
from distreduce._utils.threads import KERNEL
from distreduce._utils.typing import Array
from distreduce.sharding.cells import Probes, cell_blocks, choose_cells
from distreduce.sharding.shards import GraphRows, Incoming, Nearest, Shard, ShardFold, ShardPass, Shards

_BLOCK_ROWS = 512
# Rows of many features are compared in smaller blocks: a dense block of sparse rows takes up to 128 MB.
_BLOCK_ENTRIES = 2**24
_NOBODY = np.iinfo(np.int32).max  # sorts after every sample number


def keep_neighbours(shards: Shards, k: int, others: Sequence[Sequence[int]], probes: Probes) -> None:
    """Make the part "graph" of every shard: its rows of the symmetric k-nearest-neighbour graph, as GraphRows.

    i and j are linked if one is among the k nearest that the other has found, itself not counted. Every sample is also
    linked to itself, with distance zero. With n ≤ k all samples are linked. A sample whose searched cells hold fewer
    than k others is linked to those.

    The shards have the parts "features" (dense or CSR) and "cells" (sorted); `others` are those of an ``Arrangement``.
    """
    # Stage 1: every sample finds its k nearest.
    shards.keep("searched", _ChooseCells(probes))
    # The nearest shards first: the sooner the near samples are found, the fewer far ones are taken in between.
    nearest_first = [sorted(seen, key=lambda other: abs(other - shard)) for shard, seen in enumerate(others)]
    shards.fold("nearest", _Search(min(k, int(shards.bounds[-1]) - 1), probes.near), nearest_first)
    shards.drop("searched")
    # Stage 2: each of these links also in the other direction, so that the graph is symmetric.
    shards.fold("incoming", _CollectLinks(), others)
    shards.keep("graph", _Link())
    shards.drop("incoming")
    shards.drop("nearest")


def whole_graph(shards: Shards, part: Literal["graph", "affinity"] = "graph") -> sparse.csr_array:
    """The graph of squared distances, or of affinities, of all shards as one sparse matrix."""
    rows, n = shards.collect_part(part), int(shards.bounds[-1])
    # Each shard counts its row starts from its own first row.
    lengths = np.concatenate([np.diff(part.indptr) for part in rows])
    indptr = np.concatenate([[0], lengths.cumsum()])
    indices, values = (np.concatenate([part[field] for part in rows]) for field in (1, 2))
    return sparse.csr_array((values, indices, indptr), shape=(n, n))


@dataclass(frozen=True)
class _ChooseCells(ShardPass[NDArray[np.bool_]]):
    """Which cells every sample is compared with."""

    reads = ("features", "cells")
    probes: Probes

    def __call__(self, shard: Shard) -> NDArray[np.bool_]:
        return choose_cells(shard.features, shard.cells, self.probes)


@dataclass(frozen=True)
class _Search(ShardFold[Nearest]):
    """The k nearest among the samples found before and those of another shard; `near` as in :class:`Probes`."""

    reads = ("features", "cells", "searched")
    k: int
    near: Array

    def __call__(self, result: Nearest | None, shard: Shard, other: Shard) -> Nearest | None:
        size = max(32, min(_BLOCK_ROWS, _BLOCK_ENTRIES // shard.features.shape[1]))
        # The cells are sorted: cell c of the other shard is its rows borders[c]:borders[c + 1].
        borders = np.searchsorted(other.cells, np.arange(len(self.near) + 1))
        changed = None
        for start, stop in cell_blocks(shard.cells, size):
            # Ranges of the other shard's rows that some of these rows are compared with, and which rows those are.
            cells = self.near[shard.cells[start]]
            # A padding of −1 is an empty range: borders[−1] is the end of the rows, borders[0] their start.
            wanted = shard.searched[start:stop] & (borders[cells] < borders[cells + 1])
            columns = np.flatnonzero(wanted.any(axis=0))
            ranges = [(wanted[:, column], borders[cells[column]], borders[cells[column] + 1]) for column in columns]
            # In pieces: a block of products stays small, however large the cell.
            blocks = [
                (rows, at, min(at + size, last)) for rows, first, last in ranges for at in range(first, last, size)
            ]
            if blocks:
                # Copied before the first change: the result so far belongs to an earlier call.
                changed = _copy(result, len(shard), self.k) if changed is None else changed
                offsets = (start, shard.rows.start, other.rows.start)
                _compare(_dense(shard.features[start:stop]), other.features, blocks, offsets, changed)
        return result if changed is None else changed


@dataclass(frozen=True)
class _CollectLinks(ShardFold[tuple[Incoming, ...]]):
    """The links to a shard's samples from one shard after another, in the order of their sources."""

    reads = ("nearest",)

    def __call__(self, result: tuple[Incoming, ...] | None, shard: Shard, other: Shard) -> tuple[Incoming, ...]:
        ends = other.nearest.indices - np.int32(shard.rows.start)
        # As unsigned numbers, those of samples that come before the shard are large too.
        found = np.flatnonzero(ends.view(np.uint32) < len(shard))
        if not len(found):
            return result or ()
        sources = (found // ends.shape[1] + other.rows.start).astype(np.int32)  # k ends per row
        return (*(result or ()), Incoming(ends.ravel()[found], sources, other.nearest.distances.ravel()[found]))


@dataclass(frozen=True)
class _Link(ShardPass[GraphRows]):
    """Rows of the symmetric graph: each sample with itself, the samples it found and those that found it."""

    reads = ("nearest", "incoming")

    def __call__(self, shard: Shard) -> GraphRows:
        nearest, numbers = shard.nearest, np.arange(shard.rows.start, shard.rows.stop, dtype=np.int32)
        # Outgoing links, and the sample itself, sorted by number; empty places come last.
        own = np.column_stack([numbers, nearest.indices])
        order = own.argsort(axis=1)
        own = np.take_along_axis(own, order, 1)
        distances = np.take_along_axis(np.column_stack([np.zeros(len(own), np.float32), nearest.distances]), order, 1)
        taken = own != _NOBODY
        outgoing = (_borders(taken.sum(axis=1)), own[taken], distances[taken])
        if not shard.incoming:
            return GraphRows(*outgoing)
        # Incoming links by their end. They come in the order of their sources, which a stable sort keeps.
        ends, sources, values = (np.concatenate(field) for field in zip(*shard.incoming, strict=True))
        order = ends.argsort(kind="stable")
        borders = _borders(np.bincount(ends, minlength=len(own)))
        return GraphRows(*_union(*outgoing, borders, sources[order], values[order]))


def _copy(found: Nearest | None, rows: int, k: int) -> Nearest:
    """Lists that may be changed; empty ones at first."""
    if found is not None:
        return Nearest(found.distances.copy(), found.indices.copy())
    shape = (rows, max(1, k))
    return Nearest(np.full(shape, np.inf, np.float32), np.full(shape, _NOBODY, np.int32))


def _compare(points: Array, other: Any, blocks: list[Any], offsets: tuple[int, int, int], result: Nearest) -> None:
    """Compare some of the points with ranges of another shard's rows; `blocks` are (which points, start, stop)."""
    middle = points.mean(axis=0)  # around the mean of the block norms are small, and with them the error of the bounds
    centred = _shift(points, middle)
    for wanted, start, stop in blocks:
        rows, candidates = np.flatnonzero(wanted), _dense(other[start:stop])
        bounds = _lower_bounds(centred, rows, _shift(candidates, middle))
        _take_nearer(*bounds, points, rows, candidates, *offsets[:2], offsets[2] + start, *result)


def _dense(rows: Any) -> Array:
    return np.ascontiguousarray(rows.toarray() if sparse.issparse(rows) else rows)


def _shift(points: Array, middle: Array) -> tuple[Array, Array]:
    """a = x − middle in float32, and |a|² shrunk as :func:`_lower_bounds` needs it."""
    with np.errstate(over="ignore"):
        a = (points - middle).astype(np.float32, copy=False)
        shrink = np.float32(1.0 - (a.shape[1] + 8) * np.finfo(np.float32).eps)
        return a, shrink * np.einsum("ij,ij->i", a, a)


def _lower_bounds(own: tuple[Array, Array], rows: Array, other: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    r"""P, s, t for which P_ij + s_i + t_j is a lower bound of the squared distance of own[rows[i]] and other[j].

    |a|² + |b|² − 2 a·b in float32 differs from the distance by less than (d + 8) ε (|a|² + |b|²), the bound of all
    roundings together. With that subtracted, no sample that is near enough is missed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.float32(-2.0) * own[0][rows]) @ other[0].T, own[1][rows], other[1]


@njit(**KERNEL)
def _take_nearer(  # type: ignore[no-untyped-def]
    products, sizes_a, sizes_b, points, rows, candidates, start, own_offset, other_offset, distances, indices
):
    """Add the candidates to those lists of points[rows] in which they are among the nearest.

    The distance is computed only where its lower bound does not exceed the k-th distance so far (or is NaN).
    """
    for i in range(len(rows)):
        place = start + rows[i]
        # The point's own size is the same for all candidates: it is subtracted once.
        limit = distances[place, 0] - sizes_a[i]
        for j in range(len(candidates)):
            if products[i, j] + sizes_b[j] > limit or own_offset + place == other_offset + j:
                continue
            # By definition, in float64: BLAS decides which distances are computed, never their values.
            distance = np.float32(pair_distance(points[rows[i]], candidates[j]))
            if _farther(distances[place, 0], indices[place, 0], distance, other_offset + j):
                _replace_farthest(distances[place], indices[place], distance, other_offset + j)
                limit = distances[place, 0] - sizes_a[i]


@njit(**KERNEL)
def _farther(distance: float, index: int, than: float, other: int) -> bool:
    return distance > than or (distance == than and index > other)


@njit(**KERNEL)
def _replace_farthest(distances: Array, indices: Array, distance: float, index: int) -> None:
    """Replace the first element of a heap."""
    place, child = 0, 1  # sift down: the children of place p are 2p + 1 and 2p + 2
    while child < len(distances):
        if child + 1 < len(distances) and _farther(
            distances[child + 1], indices[child + 1], distances[child], indices[child]
        ):
            child += 1
        if not _farther(distances[child], indices[child], distance, index):
            break
        distances[place], indices[place] = distances[child], indices[child]
        place, child = child, 2 * child + 1
    distances[place], indices[place] = distance, index


def _borders(lengths: Array) -> Array:
    return np.concatenate([[0], lengths.cumsum()])


@njit(**KERNEL)
def _union(
    indptr: Array, indices: Array, values: Array, more_indptr: Array, more_indices: Array, more_values: Array
) -> tuple[Array, Array, Array]:
    """Union of the entries, row by row; an entry of both has the same value in both."""
    size = len(indices) + len(more_indices)
    out_indptr, end = np.zeros(len(indptr), np.int64), 0
    out_indices, out_values = np.empty(size, np.int32), np.empty(size, np.float32)
    for row in range(len(indptr) - 1):
        a, b = indptr[row], more_indptr[row]
        while a < indptr[row + 1] or b < more_indptr[row + 1]:
            left = indices[a] if a < indptr[row + 1] else _NOBODY
            right = more_indices[b] if b < more_indptr[row + 1] else _NOBODY
            out_indices[end] = min(left, right)
            out_values[end] = values[a] if left <= right else more_values[b]
            a, b, end = a + (left <= right), b + (right <= left), end + 1  # an entry of both advances both
        out_indptr[row + 1] = end
    # Copies, so that the unused ends of the arrays are freed.
    return out_indptr, out_indices[:end].copy(), out_values[:end].copy()

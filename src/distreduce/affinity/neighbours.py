"""The k nearest neighbours of every sample and the symmetric graph of them, on shards.

A sample is compared with the samples of its cell and with those nearest to the cell's centre, in whatever cell they are
(:mod:`distreduce.sharding.cells`). The graph keeps exactly the k nearest of these by (squared distance, sample number):
neither threads nor the grouping of shards nor the library behind the matrix products changes the result. In a single
cell the search is exact; with cells it misses some neighbours: decision 16 has figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit
from scipy import sparse

from distreduce._utils.numerics import pair_distance, to_dense
from distreduce._utils.threads import KERNEL, PART
from distreduce._utils.typing import Array
from distreduce.sharding.cells import Candidates, Probes, cell_blocks, choose_candidates
from distreduce.sharding.shards import GraphRows, Incoming, Nearest, Shard, ShardFold, ShardPass, Shards

_BLOCK_ROWS = 512
# Rows of many features are compared in smaller blocks: a dense block of sparse rows takes up to 128 MB.
_BLOCK_ENTRIES = 2**24
_NOBODY = np.iinfo(np.int32).max  # sorts after every sample number


def keep_neighbours(shards: Shards, k: int, probes: Probes) -> None:
    """Make the part "graph" of every shard: its rows of the symmetric k-nearest-neighbour graph, as GraphRows.

    i and j are linked if one is among the k nearest that the other has found, itself not counted. Every sample is also
    linked to itself, with distance zero. A sample that is compared with fewer than k others is linked to all of them.

    The shards have the parts "features" (dense or CSR) and "cells" (sorted).
    """
    # Stage 1: every sample finds its k nearest.
    shards.keep("searched", _ChooseCandidates(probes))
    others = _shards_in_reach(shards)
    # The nearest shards first: the sooner the near samples are found, the fewer far ones are taken in between.
    nearest_first = [sorted(seen, key=lambda other: abs(other - shard)) for shard, seen in enumerate(others)]
    shards.fold("nearest", _Search(min(k, int(shards.bounds[-1]) - 1)), nearest_first)
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


def _shards_in_reach(shards: Shards) -> list[list[int]]:
    """For every shard, those that hold candidates for its cells or cells that it holds candidates for."""
    holds, reached = (np.array(found, dtype=np.int32) for found in zip(*shards.collect(_Cells()), strict=True))
    seen = holds @ reached.T > 0
    # Both ways: links are collected from the shards that searched this one.
    return [np.flatnonzero(row).tolist() for row in seen | seen.T]


@dataclass(frozen=True)
class _ChooseCandidates(ShardPass[Candidates]):
    """Which samples of a shard those of every cell are compared with."""

    reads = ("features", "cells")
    probes: Probes

    def __call__(self, shard: Shard) -> Candidates:
        return choose_candidates(shard.features, shard.cells, self.probes)


@dataclass(frozen=True)
class _Cells(ShardPass[tuple[Array, Array]]):
    """Which cells a shard holds, and which of all cells it holds candidates for."""

    reads = ("cells", "searched")

    def __call__(self, shard: Shard) -> tuple[Array, Array]:
        reached = np.diff(shard.searched.indptr) > 0
        return np.bincount(shard.cells, minlength=len(reached)) > 0, reached


@dataclass(frozen=True)
class _Search(ShardFold[Nearest]):
    """The k nearest among the samples found before and those of another shard."""

    reads = ("features", "cells", "searched")
    k: int

    def __call__(self, result: Nearest | None, shard: Shard, other: Shard) -> Nearest | None:
        size = max(32, min(_BLOCK_ROWS, _BLOCK_ENTRIES // shard.features.shape[1]))
        changed, (indptr, candidates) = None, other.searched
        for start, stop in cell_blocks(shard.cells, size):
            cell = shard.cells[start]
            rows = candidates[indptr[cell] : indptr[cell + 1]]
            if len(rows):
                # Copied before the first change: the result so far belongs to an earlier call.
                changed = _copy(result, len(shard), self.k) if changed is None else changed
                # In pieces: a block of products stays small, however many candidates there are.
                pieces = [rows[at : at + size] for at in range(0, len(rows), size)]
                offsets = (start, shard.rows.start, other.rows.start)
                _compare(shard.features[start:stop], other.features, pieces, offsets, changed)
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


def _compare(rows: Any, other: Any, pieces: list[Any], offsets: tuple[int, int, int], result: Nearest) -> None:
    """Compare rows with those of another shard, a piece of them at a time."""
    points = np.ascontiguousarray(to_dense(rows))
    middle = points.mean(axis=0)  # around the mean of the block norms are small, and with them the error of the bounds
    centred = _shift(points, middle)
    for piece in pieces:
        candidates = np.ascontiguousarray(to_dense(other[piece]))
        bounds = _lower_bounds(centred, _shift(candidates, middle))
        _take_nearer(*bounds, points, candidates, piece + np.int32(offsets[2]), *offsets[:2], *result)


def _shift(points: Array, middle: Array) -> tuple[Array, Array]:
    """a = x − middle in float32, and |a|² shrunk as :func:`_lower_bounds` needs it."""
    with np.errstate(over="ignore"):
        a = (points - middle).astype(np.float32, copy=False)
        shrink = np.float32(1.0 - (a.shape[1] + 8) * np.finfo(np.float32).eps)
        return a, shrink * np.einsum("ij,ij->i", a, a)


def _lower_bounds(own: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    r"""P, s, t for which P_ij + s_i + t_j is a lower bound of the squared distance of own[i] and other[j].

    |a|² + |b|² − 2 a·b in float32 differs from the distance by less than (d + 8) ε (|a|² + |b|²), the bound of all
    roundings together. With that subtracted, no sample that is near enough is missed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.float32(-2.0) * own[0]) @ other[0].T, own[1], other[1]


@njit(**KERNEL)
def _take_nearer(  # type: ignore[no-untyped-def]
    products, sizes_a, sizes_b, points, candidates, numbers, start, own_offset, distances, indices
):
    """Add the candidates, of these numbers over all shards, to those lists in which they are among the nearest.

    The distance is computed only where its lower bound does not exceed the k-th distance so far (or is NaN).
    """
    for i in range(len(points)):
        place = start + i
        # The point's own size is the same for all candidates: it is subtracted once.
        limit = distances[place, 0] - sizes_a[i]
        for j in range(len(candidates)):
            if products[i, j] + sizes_b[j] > limit or own_offset + place == numbers[j]:
                continue
            # By definition, in float64: BLAS decides which distances are computed, never their values.
            distance, own = np.float32(pair_distance(points[i], candidates[j])), own_offset + place
            if _farther(distances[place, 0], indices[place, 0], distance, numbers[j], own):
                _replace_farthest(distances[place], indices[place], distance, numbers[j], own)
                limit = distances[place, 0] - sizes_a[i]


@njit(**PART)
def _farther(distance: float, index: int, than: float, other: int, own: int) -> bool:
    """Of samples as far away, the next ones after `own`, in a circle, are nearer.

    If the first of many equal rows were the neighbours of all the others, no affinity on the graph could have rows and
    columns of the same mass.
    """
    return distance > than or (distance == than and _steps(own, index) > _steps(own, other))


@njit(**PART)
def _steps(own: int, index: int) -> int:
    return 2 * _NOBODY if index == _NOBODY else (index - own) % _NOBODY


@njit(**PART)
def _replace_farthest(distances: Array, indices: Array, distance: float, index: int, own: int) -> None:
    """Replace the first element of a heap."""
    place, child = 0, 1  # sift down: the children of place p are 2p + 1 and 2p + 2
    while child < len(distances):
        if child + 1 < len(distances) and _farther(
            distances[child + 1], indices[child + 1], distances[child], indices[child], own
        ):
            child += 1
        if not _farther(distances[child], indices[child], distance, index, own):
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

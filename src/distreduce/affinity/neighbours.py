"""The k nearest neighbours of every sample and the symmetric graph of them, on shards.

A sample is compared with the samples of the cells it searches (cells.py). What is kept are exactly the k nearest of
these by (squared distance, number of the sample): neither threads nor the grouping of shards nor the library behind
the matrix products change the result. In a single cell the search is exact; with cells it misses some neighbours.
Measured for n = 10⁶, d = 50, k = 90 with 16,000 candidates a sample, half of today's: it finds 0.99 of them in a
mixture of 200 Gaussians and 0.73 in one of 20, whose 50,000 samples each have no structure left that cells could
follow, in 0.12 to 0.15 ms of a core for a sample. See results/benchmarks/scale.md for another mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from distreduce._utils.numba import KERNEL
from distreduce._utils.typing import Array, Index
from distreduce.affinity.links import NOBODY, Nearest, incoming_links, link
from distreduce.sharding.cells import Probes, cell_blocks, searched_cells
from distreduce.sharding.graph import GraphRows
from distreduce.sharding.shards import Shards

_BLOCK_ROWS = 512
# Rows of many features are compared in smaller blocks: a dense block of sparse rows takes up to 128 MB.
_BLOCK_ENTRIES = 2**24


def keep_neighbours(shards: Shards, k: int, others: Sequence[Sequence[int]], probes: Probes) -> None:
    """Make the part "graph" of every shard: its rows of the symmetric k-nearest-neighbour graph, as GraphRows.

    i and j are linked if one is among the k nearest that the other has found; the sample itself is none of its k. Every
    sample is also linked to itself, with distance zero. With n ≤ k all samples are linked. A sample whose searched
    cells hold fewer than k others is linked with those.

    Parameters
    ----------
    shards : Shards
        With the parts "features" (dense or CSR) and "cells" (sorted).
    k : int
        Number of neighbours.
    others : list of lists
        For every shard those that hold a cell in reach, as ``Arrangement.others``.
    probes : Probes
        The cells.
    """
    shards.keep("searched", searched_cells, ["features", "cells"], probes)
    # The nearest shards first: the sooner the near samples are found, the fewer far ones are taken in between.
    nearest_first = [sorted(seen, key=lambda other: abs(other - shard)) for shard, seen in enumerate(others)]
    shards.fold("nearest", _search, ["features", "cells", "searched"], nearest_first, shards.bounds, k, probes.near)
    shards.drop("searched")
    shards.fold("incoming", incoming_links, ["nearest"], others, shards.bounds)
    numbers = np.arange(shards.bounds[-1], dtype=np.int32)
    shards.keep("graph", link, ["nearest", "incoming"], rows=[numbers])
    shards.drop("incoming")
    shards.drop("nearest")


def graph_of(shards: Shards, part: str = "graph") -> sparse.csr_array:
    """The whole graph of squared distances, or of affinities, as a sparse matrix."""
    rows: list[GraphRows] = shards.collect(GraphRows._make, [part])
    n = int(shards.bounds[-1])
    lengths = np.concatenate([np.diff(part.indptr) for part in rows])
    indptr = np.concatenate([[0], lengths.cumsum()])
    indices, values = (np.concatenate([part[field] for part in rows]) for field in (1, 2))
    return sparse.csr_array((values, indices, indptr), shape=(n, n))


def _search(
    found: Nearest | None,
    own: Any,
    own_cells: Array,
    searched: Array,
    other: Any,
    other_cells: Array,
    _other_searched: Array,
    shard: int,
    number: int,
    bounds: Index,
    k: int,
    near: Array,
) -> Nearest | None:
    """The k nearest of those found before and of the samples of another shard."""
    size = max(32, min(_BLOCK_ROWS, _BLOCK_ENTRIES // own.shape[1]))
    borders = np.searchsorted(other_cells, np.arange(len(near) + 1))
    result = None
    for start, stop in cell_blocks(own_cells, size):
        cells = near[own_cells[start]]
        wanted = searched[start:stop] & (borders[cells] < borders[cells + 1])
        columns = np.flatnonzero(wanted.any(axis=0))
        ranges = [(wanted[:, column], borders[cells[column]], borders[cells[column] + 1]) for column in columns]
        blocks = [(rows, at, min(at + size, last)) for rows, first, last in ranges for at in range(first, last, size)]
        if blocks:
            result = _copy(found, len(own_cells), min(k, int(bounds[-1]) - 1)) if result is None else result
            offsets = (start, int(bounds[shard]), int(bounds[number]))
            _compare(_dense(own[start:stop]), other, blocks, offsets, result)
    return found if result is None else result


def _copy(found: Nearest | None, rows: int, k: int) -> Nearest:
    """Lists to change; at first, empty ones."""
    if found is not None:
        return Nearest(found.distances.copy(), found.indices.copy())
    shape = (rows, max(1, k))
    return Nearest(np.full(shape, np.inf, np.float32), np.full(shape, NOBODY, np.int32))


def _compare(points: Array, other: Any, blocks: list[Any], offsets: tuple[int, int, int], result: Nearest) -> None:
    """Compare some of the points with ranges of another shard's rows; `blocks` are (which points, start, stop)."""
    middle = points.mean(axis=0)
    centred = _centred(points, middle)
    for wanted, start, stop in blocks:
        rows, candidates = np.flatnonzero(wanted), _dense(other[start:stop])
        bounds = _lower_bounds(centred, rows, _centred(candidates, middle))
        _take_nearer(*bounds, points, rows, candidates, *offsets[:2], offsets[2] + start, *result)


def _dense(rows: Any) -> Array:
    return np.ascontiguousarray(rows.toarray() if sparse.issparse(rows) else rows)


def _centred(points: Array, middle: Array) -> tuple[Array, Array]:
    """a = x − middle in float32, and |a|² shrunk as :func:`_lower_bounds` needs it."""
    with np.errstate(over="ignore"):
        a = (points - middle).astype(np.float32, copy=False)
        shrink = np.float32(1.0 - (a.shape[1] + 8) * np.finfo(np.float32).eps)
        return a, shrink * np.einsum("ij,ij->i", a, a)


def _lower_bounds(own: tuple[Array, Array], rows: Array, other: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    r"""P, s, t for which P_ij + s_i + t_j is no more than the squared distance of own[rows[i]] and other[j].

    |a|² + |b|² − 2 a·b in float32 differs from the distance by less than (d + 8) ε (|a|² + |b|²), the bound of all its
    roundings together. Take that off, and nothing that is near enough is missed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.float32(-2.0) * own[0][rows]) @ other[0].T, own[1][rows], other[1]


@njit(**KERNEL)
def _take_nearer(
    products: Array,
    sizes_a: Array,
    sizes_b: Array,
    points: Array,
    rows: Array,
    candidates: Array,
    start: int,
    own_offset: int,
    other_offset: int,
    distances: Array,
    indices: Array,
) -> None:
    """Take the candidates into the lists of points[rows] to which they belong.

    Only where the bound of the distance is no more than the k-th distance so far (or NaN) is the distance computed.
    """
    for i in range(len(rows)):
        place = start + rows[i]
        limit = distances[place, 0] - sizes_a[i]
        for j in range(len(candidates)):
            if products[i, j] + sizes_b[j] > limit or own_offset + place == other_offset + j:
                continue
            distance = np.float32(_squared_distance(points[rows[i]], candidates[j]))
            if _farther(distances[place, 0], indices[place, 0], distance, other_offset + j):
                _replace_farthest(distances[place], indices[place], distance, other_offset + j)
                limit = distances[place, 0] - sizes_a[i]


@njit(**KERNEL)
def _squared_distance(x: Array, y: Array) -> float:
    """|x − y|² by its definition, in float64: the same bits for |y − x|²."""
    total = 0.0
    for c in range(len(x)):
        difference = float(x[c]) - float(y[c])
        total += difference * difference
    return total


@njit(**KERNEL)
def _farther(distance: float, index: int, than: float, other: int) -> bool:
    return distance > than or (distance == than and index > other)


@njit(**KERNEL)
def _replace_farthest(distances: Array, indices: Array, distance: float, index: int) -> None:
    """Put a neighbour in the place of a heap's first."""
    place, child = 0, 1
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

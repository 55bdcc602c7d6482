"""Cells of near samples, so that a sample's neighbours are sought among few others.

Up to ``EXACT_ROWS`` samples form one cell, and the search is exact. More are divided by k-means. The samples of a cell
are compared with each other and with about ``SEARCHED_ROWS`` samples of all cells, those nearest to the cell's centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage

from distreduce._utils.numerics import blocks, kmeans, pair_distance, to_dense
from distreduce._utils.threads import KERNEL
from distreduce._utils.typing import Array

EXACT_ROWS = 40_000
ROWS_PER_CELL = 500
MAX_CELLS = 4096
SAMPLE_PER_CELL = 64
SAMPLE_ENTRIES = 2**27  # a gigabyte of float64
# The recall that this gives, and its cost: see affinity/neighbours.py.
SEARCHED_ROWS = 24_000
_ITERATIONS = 5  # of k-means: cells need not be optimal
_BLOCK = 256  # rows whose scores are in memory at once
_CENTRES = 64  # centres whose distances to a sample are in memory at once


class Probes(NamedTuple):
    """Where to search: the samples of a cell are compared with all that are nearer to its centre than the radius."""

    centres: Array  # of the cells, (c, d)
    radii: Array  # half the square of each radius, as in :func:`centre_distances`, (c,)


class Candidates(NamedTuple):
    """The samples of a shard that those of every cell are compared with: ``rows[indptr[c] : indptr[c + 1]]``."""

    indptr: Array  # (cells + 1,)
    rows: Array  # within the shard, int32, ascending for each cell


def n_cells(n: int) -> int:
    return 1 if n <= EXACT_ROWS else min(MAX_CELLS, n // ROWS_PER_CELL)


def sample_size(k: int, n_features: int) -> int:
    """Number of rows to find k centres from: many per centre, unless they take a gigabyte as a dense array."""
    return max(k, min(SAMPLE_PER_CELL * k, SAMPLE_ENTRIES // n_features))


def find_centres(sample: Any, k: int, random_state: np.random.RandomState) -> Array:
    """At most k centres (k, d) by k-means on sampled rows, ordered so that near centres have near numbers.

    The order is that of the leaves of Ward's tree: every range of numbers covers a few branches, so that a shard, which
    is a range of cells, has most of its neighbours in few other shards.
    """
    rows = to_dense(sample)
    k = min(k, len(rows))
    if k == 1:
        return np.asarray(rows.mean(axis=0, keepdims=True, dtype=np.float64))
    found = cluster_means(rows, k, "random", random_state)
    return np.asarray(found[leaves_list(linkage(found, "ward"))])


def cluster_means(rows: Array, k: int, init: Any, random_state: np.random.RandomState | int) -> Array:
    """Return k centres (k, d) after a few steps of k-means, the same for any number of threads."""
    means = kmeans(rows, k, random_state, init=init, max_iter=_ITERATIONS)
    return np.asarray(means.cluster_centers_, dtype=np.float64)


def centre_scores(block: Any, centres: Array) -> Array:
    r"""Scores (rows, c) that order the centres by their distance from every row of a dense or sparse block.

    With the mean m of the centres, ½|x − c|² = (½|c − m|² + m·(c − m)) − x·(c − m) + terms of x alone: a sum over the
    entries of x that are not zero, which loses little precision where the data are far from the origin.
    A row's scores depend on that row alone; those of a matrix product may depend on its place in the block.
    """
    middle = centres.mean(axis=0)
    weights = np.ascontiguousarray((centres - middle).T)
    constants = 0.5 * np.einsum("cj,cj->j", weights, weights) + middle @ weights
    # Dense rows too: one loop, and the same bits however the rows are stored.
    entries = sparse.csr_array(block, copy=True)
    entries.sum_duplicates()
    return _scores(entries.indptr, entries.indices, entries.data, weights, constants)


@njit(**KERNEL)
def _scores(indptr: Array, columns: Array, values: Array, weights: Array, constants: Array) -> Array:
    out = np.empty((len(indptr) - 1, len(constants)))
    for i in range(len(out)):
        out[i] = constants
        for entry in range(indptr[i], indptr[i + 1]):
            value, row = float(values[entry]), weights[columns[entry]]
            for j in range(len(constants)):  # contiguous, which is SIMD code
                out[i, j] -= value * row[j]
    return out


def nearest_centre(block: Any, centres: Array) -> Array:
    """Number (rows,) of the centre nearest to every row, int32; the first of equally near ones."""
    parts = [centre_scores(block[rows], centres).argmin(axis=1) for rows in blocks(block.shape[0], _BLOCK)]
    return np.concatenate([np.empty(0, np.int32), *parts]).astype(np.int32)


def centre_distances(block: Any, centres: Array) -> Array:
    """½|x − c|² (rows, c) of every row and centre; the bits for a row depend on that row alone."""
    rows = np.ascontiguousarray(to_dense(block))
    return centre_scores(block, centres) + 0.5 * _distances(rows, centres.mean(axis=0))[:, None]


@njit(**KERNEL)
def _distances(rows: Array, point: Array) -> Array:
    return np.array([pair_distance(row, point) for row in rows])


def find_radii(sample: Any, centres: Array, n: int) -> Array:
    """Radii for :class:`Probes`, from a random sample of n samples: ``SEARCHED_ROWS`` are nearer to each centre."""
    rank = sample.shape[0] * SEARCHED_ROWS // n
    if len(centres) == 1 or rank >= sample.shape[0]:
        return np.full(len(centres), np.inf)
    # A group of centres at a time, so that their distances to the whole sample fit into memory.
    groups = np.array_split(centres, -(-len(centres) // _CENTRES))
    return np.concatenate([np.partition(_blockwise(sample, group), rank, axis=0)[rank] for group in groups])


def _blockwise(sample: Any, centres: Array) -> Array:
    return np.concatenate([centre_distances(sample[rows], centres) for rows in blocks(sample.shape[0], _BLOCK)])


def choose_candidates(features: Any, cells: Array, probes: Probes) -> Candidates:
    """The samples of a shard that those of each cell are compared with."""
    found = []
    for start in range(0, len(cells), _BLOCK):
        own = cells[start : start + _BLOCK]
        # Nearer, not as near: however many samples are equal, they are compared with their cell only.
        wanted = centre_distances(features[start : start + _BLOCK], probes.centres) < probes.radii
        wanted[np.arange(len(own)), own] = True
        rows, columns = np.nonzero(wanted)
        found.append(np.stack([columns, rows + start]).astype(np.int32))
    columns, rows = np.concatenate(found, axis=1)
    counts = np.bincount(columns, minlength=len(probes.radii))
    return Candidates(np.concatenate([[0], counts.cumsum()]), rows[columns.argsort(kind="stable")])


def cell_blocks(cells: Array, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `size` rows of a single cell each; the cells of the rows are sorted."""
    borders = np.flatnonzero(np.diff(cells, prepend=-1, append=-1))  # first row of every cell, and the end
    for first, last in zip(borders[:-1], borders[1:], strict=True):
        for start in range(first, last, size):
            yield int(start), int(min(start + size, last))

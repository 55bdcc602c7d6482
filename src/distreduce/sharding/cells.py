"""Cells of near samples, so that a sample's neighbours are sought among few others.

Up to ``EXACT_ROWS`` samples form one cell, and the search is exact. More are divided by k-means (an inverted file). A
sample is compared with the samples of the nearest cells, as many cells as hold at least ``SEARCHED_ROWS`` samples: the
work per sample does not grow with n.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from distreduce._utils.threads import KERNEL, single_threaded_blas
from distreduce._utils.typing import Array

EXACT_ROWS = 40_000
ROWS_PER_CELL = 500
MAX_CELLS = 4096
SAMPLE_PER_CELL = 64
SAMPLE_ENTRIES = 2**27  # a gigabyte of float64
# The recall that this gives, and its cost: see affinity/neighbours.py.
SEARCHED_ROWS = 32_000
# A sample chooses among the cells nearest to its own that hold this many times the samples it will be compared with:
# a factor of two loses 0.07 of the recall, a factor of four gains nothing.
REACH = 3
_ITERATIONS = 5  # of k-means: cells need not be optimal
_BLOCK = 256  # rows whose scores are in memory at once


class Probes(NamedTuple):
    """Where to search: everything that does not depend on single samples."""

    centres: Array  # of the cells, (c, d)
    counts: Array  # number of samples in every cell, (c,)
    near: Array  # for every cell those in reach: itself first, then by distance between centres, padded with −1 (c, w)


def n_cells(n: int) -> int:
    """Number of cells for n samples."""
    return 1 if n <= EXACT_ROWS else min(MAX_CELLS, n // ROWS_PER_CELL)


def sample_size(k: int, n_features: int) -> int:
    """Number of rows to find k centres from: many per centre, unless they take a gigabyte as a dense array."""
    return max(k, min(SAMPLE_PER_CELL * k, SAMPLE_ENTRIES // n_features))


def find_centres(sample: Any, k: int, random_state: np.random.RandomState) -> Array:
    """At most k centres (k, d) by k-means on sampled rows, ordered so that near centres have near numbers.

    The order is that of the leaves of Ward's tree: every range of numbers covers a few branches, so that a shard, which
    is a range of cells, has most of its neighbours in few other shards.
    """
    rows = sample.toarray() if sparse.issparse(sample) else np.asarray(sample)
    k = min(k, len(rows))
    if k == 1:
        return np.asarray(rows.mean(axis=0, keepdims=True, dtype=np.float64))
    means = KMeans(k, init="random", n_init=1, max_iter=_ITERATIONS, random_state=random_state)
    # OpenMP's threads would add up a centre in the order in which they finish.
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal rows of X with different targets: fewer centres
        found = means.fit(rows).cluster_centers_.astype(np.float64)
    return np.asarray(found[leaves_list(linkage(found, "ward"))])


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
    parts = [
        centre_scores(block[start : start + _BLOCK], centres).argmin(axis=1)
        for start in range(0, block.shape[0], _BLOCK)
    ]
    return np.concatenate([np.empty(0, np.int32), *parts]).astype(np.int32)


def find_probes(centres: Array, counts: Array) -> Probes:
    """For every cell the nearest cells that together hold ``REACH · SEARCHED_ROWS`` samples, or all cells."""
    lists: list[Array] = []
    for start in range(0, len(centres), _BLOCK):
        distances = cdist(centres[start : start + _BLOCK], centres)
        cells = np.arange(start, start + len(distances))
        distances[cells - start, cells] = -1.0  # first, even before a cell with the same centre
        order = distances.argsort(axis=1, kind="stable")
        widths = _first_to_reach(counts[order], REACH * SEARCHED_ROWS).sum(axis=1)
        lists.extend(row[:width].astype(np.int32) for row, width in zip(order, widths, strict=True))
    # As one rectangular array, padded with −1.
    near = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int32)
    for row, found in zip(near, lists, strict=True):
        row[: len(found)] = found
    return Probes(centres, counts, near)


def _first_to_reach(counts: Array, rows: int) -> Array:
    """Which entries of every row are needed, from the left, for a sum of at least `rows`."""
    # The sum before an entry decides: the entry that reaches the limit is still needed.
    return np.asarray(counts.cumsum(axis=1) - counts < rows)


def choose_cells(features: Any, cells: Array, probes: Probes) -> Array:
    """Whether each sample of a shard is compared with cell ``probes.near[its cell, w]``: (rows, w) of bool.

    These are the cells in reach whose centres are nearest to the sample itself, until they hold ``SEARCHED_ROWS``.
    """
    chosen = np.zeros((len(cells), probes.near.shape[1]), dtype=bool)
    for start, stop in cell_blocks(cells, _BLOCK):
        near = probes.near[cells[start]]  # all rows of a block are in one cell, and have the same cells in reach
        near = near[near >= 0]  # without the padding
        order = centre_scores(features[start:stop], probes.centres[near]).argsort(axis=1, kind="stable")
        block = np.zeros(order.shape, dtype=bool)
        np.put_along_axis(block, order, _first_to_reach(probes.counts[near][order], SEARCHED_ROWS), axis=1)
        chosen[start:stop, : len(near)] = block
    return chosen


def cell_blocks(cells: Array, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `size` rows of a single cell each; the cells of the rows are sorted."""
    borders = np.flatnonzero(np.diff(cells, prepend=-1, append=-1))  # first row of every cell, and the end
    for first, last in zip(borders[:-1], borders[1:], strict=True):
        for start in range(first, last, size):
            yield int(start), int(min(start + size, last))

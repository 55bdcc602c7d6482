"""An order of the samples that depends on their values alone, and its borders between shards.

Rows are identified by a hash of their values. Equal rows are merged, as in merge.py. The first s samples in the order
of the hashes are a random subsample that does not depend on the order or partition of the input. Samples are sorted by
(cell, hash): near samples lie in the same shard or in one of few others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.distances import divide_columns
from distreduce._utils.numba import KERNEL
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index
from distreduce.sharding.cells import Probes, find_centres, find_probes, n_cells, nearest_centre, sample_size
from distreduce.sharding.merge import Merged
from distreduce.sharding.shards import equal_bounds

# Below shards.ROWS_PER_SHARD: a shard's border then moves by less than half a shard to the next border of cells.
LARGEST_CELL = 2000
_BLOCK = 2048
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio
_LANES = np.array([0x243F6A8885A308D3, 0x13198A2E03707344], dtype=np.uint64)  # digits of π


@dataclass(frozen=True)
class Arrangement:
    """Distinct samples sorted by (cell, hash), and what a search for neighbours needs to know.

    Attributes
    ----------
    merged : Merged
        The samples, in the final order.
    random_order : (k,) array
        Numbers of the samples in the order of their hashes: the first s are a random subsample.
    bounds : (shards + 1,) array
        Borders of the shards.
    cells : (k,) int32 array
        The cell of every sample, sorted.
    probes : Probes
        The cells, and which are near to which.
    others : list of lists
        For every shard the sorted numbers of the shards that hold a cell in reach of one of its cells, or that have one
        of its cells in reach.
    """

    merged: Merged
    random_order: Index
    bounds: Index
    cells: NDArray[np.int32]
    probes: Probes
    others: list[list[int]]


def merge_rows(X: Any, Y: Array | None, weights: Array, workers: Workers = SERIAL) -> Merged:
    """Merge equal rows in memory, X dense or CSR (n, d), Y (n, c) or None; they are in the order of their hashes."""
    keys = _by_blocks(lambda rows: row_keys(X[rows], None if Y is None else Y[rows]), X.shape[0], workers)
    return merge_by_key(keys, weights)


def arrange(
    X: Any, merged: Merged, unit: float | Array, random_state: np.random.RandomState, workers: Workers = SERIAL
) -> Arrangement:
    """Arrange merged rows in memory; near is what is near in X / unit."""
    # In the order of their hashes, the first rows are a random sample.
    k = n_cells(len(merged.rows))
    sampled = divide_columns(X[merged.rows[: sample_size(k, X.shape[1])]], unit)
    means = find_centres(sampled, k, random_state)
    # Merged rows as well: X may be a file, which is read fastest from first to last.
    nearest = _by_blocks(lambda rows: nearest_centre(divide_columns(X[rows], unit), means), X.shape[0], workers)[
        merged.rows
    ]
    return arrange_by_cells(merged, nearest, means)


def _by_blocks(function: Callable[[slice], Array], n: int, workers: Workers) -> Array:
    """The function's results for blocks of n rows, one after another."""

    def one(block: int, n_blocks: int) -> Array:
        return function(slice(block * _BLOCK, min((block + 1) * _BLOCK, n)))

    return np.concatenate(workers.run(one, -(-n // _BLOCK)))


def row_keys(X: Any, Y: Array | None) -> NDArray[np.uint64]:
    """Hashes (n, 2), of 128 bits, of the numbers in the rows of X (dense or sparse) and of Y.

    A row's hash depends on its numbers alone: not on their type or storage, nor on the sign of zero or the bits of NaN.
    It is the sum over the non-zero numbers of a mix of (column, number), in two lanes.

    Examples
    --------
    >>> keys = row_keys(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0]]), None)
    >>> bool((keys[0] == keys[2]).all()), bool((keys[0] == keys[1]).any())
    (True, False)
    """
    keys = np.zeros((X.shape[0], 2), dtype=np.uint64)
    for table, first_column in ((X, 0), (Y, X.shape[1])):
        if table is not None:
            entries = sparse.csr_array(table, copy=True)
            entries.sum_duplicates()
            _add_hashes(entries.indptr, entries.indices, entries.data, first_column, _LANES, keys)
    return keys


@njit(**KERNEL)
def _add_hashes(indptr: Array, columns: Array, values: Array, first: int, lanes: Array, keys: Array) -> None:
    for i in range(len(indptr) - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            value = float(values[entry])
            if value != 0.0:  # a stored zero must not differ from one that is not stored
                bits = np.float64(value if value == value else np.nan).view(np.uint64)  # one bit pattern for all NaN
                column = np.uint64(first + columns[entry] + 1) * _GOLDEN
                for lane in range(2):
                    # Sums modulo 2⁶⁴ do not depend on the order of the entries.
                    keys[i, lane] += _mix(bits ^ _mix(column ^ lanes[lane]))


@njit(**KERNEL)
def _mix(bits: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the argument."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def merge_by_key(keys: NDArray[np.uint64], weights: Array) -> Merged:
    """Merge rows of equal keys and sort them by key; rows of weight zero are left out."""
    used = np.flatnonzero(weights > 0)
    order = used[np.lexsort((keys[used, 1], keys[used, 0]))]
    new = np.ones(len(order), dtype=bool)  # a key that differs from the one before it starts a new sample
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = new.cumsum() - 1
    # Small weights first, as in merge_duplicates: not even rounding may depend on the order of the rows.
    small_first = used[np.argsort(weights[used], kind="stable")]
    totals = np.bincount(group[small_first], weights=weights[small_first])
    return Merged(order[new], group, totals.astype(np.float64))


def arrange_by_cells(merged: Merged, nearest: NDArray[np.int32], centres: Array) -> Arrangement:
    """The arrangement of samples that are in the order of their keys, from the centre nearest to each."""
    order = np.argsort(nearest, kind="stable")  # stable: within a cell, samples stay in the order of their keys
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    # Index −1, of the rows without weight, picks the −1 at the end.
    group = np.append(place, -1)[merged.group]
    cells, pieces = split_large_cells(nearest[order], len(centres))
    bounds = shard_bounds(cells)
    # The pieces of a split cell all have its centre.
    found = find_probes(np.repeat(centres, pieces, axis=0), np.bincount(cells))
    in_order = Merged(merged.rows[order], group, merged.weights[order])
    return Arrangement(in_order, place, bounds, cells, found, shards_in_reach(cells, bounds, found.near))


def split_large_cells(nearest: NDArray[np.int32], n_centres: int) -> tuple[NDArray[np.int32], Index]:
    """Split cells into equal parts by key, of at most ``LARGEST_CELL`` samples; also the number of parts per centre.

    However uneven the data, even if most samples have the same features, a sample is then compared with hardly more
    than ``SEARCHED_ROWS`` others. A single centre, the exact search, keeps a single cell.
    """
    counts = np.bincount(nearest, minlength=n_centres)
    pieces = np.minimum(counts, 1) if n_centres == 1 else -(-counts // LARGEST_CELL)
    first_row, first_cell = counts.cumsum() - counts, pieces.cumsum() - pieces
    within = np.arange(len(nearest)) - first_row[nearest]  # place of each sample in its cell
    return (first_cell[nearest] + within * pieces[nearest] // counts[nearest]).astype(np.int32), pieces


def shard_bounds(cells: NDArray[np.int32]) -> Index:
    """Borders of about equal shards that split no cell; a single cell is cut into equal shards."""
    even = equal_bounds(len(cells))
    if cells[0] == cells[-1]:
        return even
    borders = np.flatnonzero(np.diff(cells, prepend=-1, append=-1))
    right = np.searchsorted(borders, even)  # move every even border to the nearer of the two borders of cells around it
    left = np.maximum(right - 1, 0)
    return np.where(even - borders[left] < borders[right] - even, borders[left], borders[right]).astype(np.intp)


def shards_in_reach(cells: NDArray[np.int32], bounds: Index, near: Array) -> list[list[int]]:
    """For every shard, the shards that hold a cell in reach of its cells or have its cells in reach."""
    n_shards, n_cells = len(bounds) - 1, len(near)
    shard = np.repeat(np.arange(n_shards), np.diff(bounds))
    # Which shard holds which cells, and which cells are in reach of each other.
    holds = sparse.csr_array((np.ones(len(cells), bool), (shard, cells)), shape=(n_shards, n_cells))
    cell, column = np.nonzero(near >= 0)
    reach = sparse.csr_array((np.ones(len(cell), bool), (cell, near[cell, column])), shape=(n_cells, n_cells))
    seen = (holds @ reach @ holds.T).toarray()
    # Both ways: links are collected from the shards that searched this one.
    return [np.flatnonzero(row).tolist() for row in seen | seen.T]

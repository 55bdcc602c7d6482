"""An order of the samples that depends on their values alone, and its borders between shards.

The first s samples in the order of their hashes are a random subsample that does not depend on the order or partition
of the input. Samples are sorted by (cell, hash): near samples lie in the same shard or in one of few others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from distreduce._utils.typing import Array, Index
from distreduce.sharding.cells import Probes, find_probes
from distreduce.sharding.merge import Merged
from distreduce.sharding.shards import equal_bounds

# Below shards.ROWS_PER_SHARD: a shard's border then moves by less than half a shard to the next border of cells.
LARGEST_CELL = 2000


@dataclass(frozen=True)
class Arrangement:
    """Distinct samples sorted by (cell, hash), and what a search for neighbours needs to know."""

    merged: Merged
    random_order: Index  # numbers of the samples in the order of their hashes: the first s are a random subsample
    bounds: Index  # borders of the shards
    cells: NDArray[np.int32]  # of every sample, sorted
    probes: Probes
    others: list[list[int]]  # for every shard those that hold a cell in reach of its cells, or have its cells in reach


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

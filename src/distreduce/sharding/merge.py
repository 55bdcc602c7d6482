"""The data as a weighted measure: duplicates merged, rows in an order that depends on their values alone.

The solver therefore sees the same bits whether a sample is repeated or has a weight of two, and in whatever order the
samples come. Rows in memory are sorted by their values, those of large samples by (cell, hash): near samples lie in the
same shard or in one of few others, and the first s in the order of their hashes are a random subsample.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from distreduce._utils.typing import Array, Index
from distreduce.sharding.cells import Probes
from distreduce.sharding.shards import equal_bounds

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio
_LANES = np.array([0x243F6A8885A308D3, 0x13198A2E03707344], dtype=np.uint64)  # digits of π
_BLOCK_ENTRIES = 50_000


@dataclass(frozen=True)
class Merged:
    """Distinct rows, and which row became which."""

    rows: Index  # for each distinct sample, the number of one row that holds it
    group: Index  # for each row, the number of its distinct sample; −1 for rows of weight zero, which take no part
    weights: Array  # total weight of each distinct sample
    sites: Index | None = None  # the same number for distinct samples of equal features, if that was asked for

    @property
    def counts(self) -> Index:
        """Number of rows of each distinct sample."""
        return np.bincount(self.group[self.group >= 0], minlength=len(self.rows))

    @property
    def trivial(self) -> bool:
        """Whether every row is a sample of its own."""
        return len(self.rows) == len(self.group)


def merge_duplicates(X: Any, Y: Array | None, weights: Array, *, precomputed: bool = False) -> Merged:
    """Merge rows equal in X and Y and sort them by value; rows of weight zero are left out.

    Distances (`precomputed`) have no values to sort by: their rows stay apart and in their order.
    """
    used = np.flatnonzero(weights > 0)
    if precomputed:
        order, inverse = np.arange(len(used)), np.arange(len(used))
    else:
        _, order, inverse = np.unique(_value_keys(X[used], None if Y is None else Y[used]), True, True)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[used] = inverse.ravel()
    return _with_totals(used[order], group, weights)


def join_groups(groups: Index, others: Index) -> Index:
    """Number the groups that rows form if those which share a number in either of the two belong together."""
    shape = (int(groups.max()) + 1, int(others.max()) + 1)
    links = sparse.coo_array((np.ones(len(groups)), (groups, others)), shape=shape)
    # A graph of both kinds of groups, in which every row is an edge.
    graph = sparse.block_array([[None, links], [links.T, None]])
    return np.asarray(connected_components(graph, directed=False)[1][groups], dtype=np.intp)


def merge_by_key(keys: NDArray[np.uint64], weights: Array) -> Merged:
    """Merge rows of equal keys and sort them by key; rows of weight zero are left out."""
    used = np.flatnonzero(weights > 0)
    order = used[np.lexsort((keys[used, 1], keys[used, 0]))]
    new = np.ones(len(order), dtype=bool)  # a key that differs from the one before it starts a new sample
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = new.cumsum() - 1
    return _with_totals(order[new], group, weights)


def _with_totals(rows: Index, group: Index, weights: Array) -> Merged:
    used = np.flatnonzero(weights > 0)
    # Small weights first: not even the rounding of a sum may depend on the order of the rows.
    small_first = used[np.argsort(weights[used], kind="stable")]
    totals = np.bincount(group[small_first], weights=weights[small_first], minlength=len(rows))
    return Merged(rows, group, totals.astype(np.float64))


def _value_keys(X: Any, Y: Array | None) -> NDArray[np.void]:
    """One comparable key per row, ordered as the numbers themselves: no unit or origin of X changes the order."""
    if sparse.issparse(X):
        X = _sparse_ranks(X)
    table = np.ascontiguousarray(X if Y is None else np.hstack([X, Y]), dtype=np.float64) + 0.0  # −0.0 becomes 0.0
    table[np.isnan(table)] = np.nan  # one bit pattern for all NaN
    bits = table.view(np.int64)
    # Bytes compare like the numbers once negative ones are inverted, the sign is flipped and the largest byte is first.
    sortable = np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).astype(">i8")
    return np.ascontiguousarray(sortable).view(np.dtype((np.void, table.shape[1] * table.itemsize))).ravel()


def _sparse_ranks(X: Any) -> Array:
    """Rank (n, 1) of every sparse row in the order its dense row would have."""
    X = sparse.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    # Tuples that compare like the dense rows, from the entries alone and a zero at the end.
    keys = [
        # A positive entry is more than the zero of other rows, the more so the earlier; a negative one is less.
        (*((1, -j, v) if v > 0 else (-1, j, v) for j, v in zip(X.indices[a:b], X.data[a:b], strict=True)), (0, 0, 0.0))
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([[ranks[key]] for key in keys], dtype=np.float64)


def row_keys(X: Any, first: int = 0) -> NDArray[np.uint64]:
    """Hashes (n, 2), of 128 bits, of the numbers in the rows of X, dense or sparse, whose columns count from `first`.

    A row's hash depends on its numbers alone: not on their type or storage, nor on the sign of zero or the bits of NaN.
    It is the sum over the non-zero numbers of a mix of (column, number), in two lanes: the hash of two tables side by
    side is the sum of theirs.
    """
    keys, entries = np.zeros((X.shape[0], 2), dtype=np.uint64), sparse.csr_array(X, copy=True)
    entries.sum_duplicates()
    _add_hashes(entries, first, keys)
    return keys


def _add_hashes(entries: sparse.csr_array, first: int, keys: NDArray[np.uint64]) -> None:
    """Add the mixes of the numbers of every row to its keys; the columns are numbered from `first`."""
    numbers = np.arange(first + 1, first + 1 + entries.shape[1], dtype=np.uint64)
    columns = _mix((numbers * _GOLDEN)[:, None] ^ _LANES)
    # Blocks of whole rows that fit into the cache.
    ends = entries.indptr
    cuts = np.unique(np.append(np.searchsorted(ends, np.arange(0, ends[-1], _BLOCK_ENTRIES)), len(keys)))
    for top, bottom in itertools.pairwise(cuts):
        block = slice(ends[top], ends[bottom])
        values = entries.data[block].astype(np.float64)
        values[np.isnan(values)] = np.nan  # one bit pattern for all NaN
        mixed = _mix(values.view(np.uint64)[:, None] ^ columns[entries.indices[block]])
        mixed[values == 0.0] = 0  # a stored zero must not differ from one that is not stored
        # Sums modulo 2⁶⁴ do not depend on the order of the entries, and differences of running sums are exact.
        sums = np.concatenate([np.zeros((1, 2), dtype=np.uint64), mixed.cumsum(axis=0, dtype=np.uint64)])
        keys[top:bottom] += np.diff(sums[ends[top : bottom + 1] - ends[top]], axis=0)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the argument."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


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


def arrange_by_cells(merged: Merged, nearest: NDArray[np.int32], probes: Probes) -> Arrangement:
    """The arrangement of samples that are in the order of their keys, from the centre nearest to each."""
    order = np.argsort(nearest, kind="stable")  # stable: within a cell, samples stay in the order of their keys
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    # Index −1, of the rows without weight, picks the −1 at the end.
    group = np.append(place, -1)[merged.group]
    cells, pieces = split_large_cells(nearest[order], len(probes.centres))
    # The pieces of a split cell all have its centre.
    found = Probes(np.repeat(probes.centres, pieces, axis=0), np.repeat(probes.radii, pieces))
    sites = None if merged.sites is None else merged.sites[order]
    in_order = Merged(merged.rows[order], group, merged.weights[order], sites)
    return Arrangement(in_order, place, shard_bounds(cells), cells, found)


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

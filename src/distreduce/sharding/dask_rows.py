"""Rows of dask arrays and frames: checked, put in order and regrouped into shards on the cluster that holds them.

Only a few numbers per row come to this process: keys, cells, weights and targets. The result does not depend on how the
rows were partitioned, and equals that of the same rows in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.distances import divide_columns
from distreduce._utils.typing import Array, Index
from distreduce.sharding.cells import find_centres, n_cells, nearest_centre, sample_size
from distreduce.sharding.dask_collections import (
    check_block,
    check_gatherable,
    compute,
    current_client,
    empty_rows,
    number_type,
    partitions,
)
from distreduce.sharding.dask_shards import RETRIES, DaskShards, submit_all
from distreduce.sharding.merge import Merged
from distreduce.sharding.order import Arrangement, arrange_by_cells, merge_by_key, row_keys
from distreduce.sharding.row_file import no_room
from distreduce.sharding.rows import RowMap, Rows, subsample_size, take_subsample
from distreduce.sharding.sample import ShardedSample
from distreduce.sharding.shards import Part, Shard, ShardPass


def read_rows(X: Any, on_shards: Callable[[int], bool]) -> Any:
    """Read a dask array or frame: as :class:`DaskRows` if ``on_shards(n)`` is true for its n rows, else as an array.

    Without a client the partitions are read here one after another, into a temporary file: the array is a view of it.
    """
    client = current_client()
    if client is None:
        return _read_into_file(X)
    rows = DaskRows(X, client)
    return rows if rows.shape[0] > 1 and on_shards(rows.shape[0]) else rows.gather()


class DaskRows(Rows):
    """Rows of a dask array or frame (n, d) on a cluster, checked.

    Attributes
    ----------
    shape : (n, d)
    extremes : (2, d) array
        Smallest and largest number of every column.
    """

    def __init__(self, X: Any, client: Any) -> None:
        from dask.delayed import delayed

        dtype, task = number_type(X), delayed(check_block, pure=False)
        # Checked once; the workers hold the checked blocks from here on.
        blocks = client.compute([task(block, dtype) for block in partitions(X)], retries=RETRIES)
        found = client.gather(submit_all(client, _extent, [blocks], key="Extent"))
        lengths, lows, highs = zip(*found, strict=True)
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        self.shape = (int(bounds[-1]), int(empty_rows(X).shape[1]))
        self.extremes = np.stack([np.min(lows, axis=0), np.max(highs, axis=0)])
        self._client, self._blocks = client, blocks
        # The partitions as shards, for passes over the rows before they are in order.
        self._partitions = DaskShards([{"features": block} for block in blocks], bounds, client)

    def gather(self) -> Array:
        """All rows, in this process."""
        check_gatherable(*self.shape)
        return np.concatenate(self._client.gather(self._blocks))

    def take(self, rows: Index) -> Array:
        """Some rows, in the given order, in this process."""
        chosen = np.zeros(self.shape[0], dtype=bool)
        chosen[rows] = True
        found = np.concatenate(self._partitions.collect(_Take(chosen)))
        # The partitions return the rows in ascending order: restore the order that was asked for.
        return np.asarray(found[np.searchsorted(np.sort(rows), rows)])

    def map(self, row_map: RowMap) -> Array:
        """Places (n, p) of all rows."""
        return np.concatenate(self._partitions.collect(_Apply(row_map)))

    def merge(self, Y: Array | None, weights: Array) -> Merged:
        """As :func:`distreduce.sharding.order.merge_rows`."""
        return merge_by_key(np.concatenate(self._partitions.collect(_Keys(Y))), weights)

    def arrange(self, merged: Merged, unit: float | Array, random_state: np.random.RandomState) -> Arrangement:
        """As :func:`distreduce.sharding.order.arrange`."""
        # In the order of their hashes, the first rows are a random sample.
        k = n_cells(len(merged.rows))
        means = find_centres(
            divide_columns(self.take(merged.rows[: sample_size(k, self.shape[1])]), unit), k, random_state
        )
        nearest = np.concatenate(self._partitions.collect(_Apply(partial(_nearest_centre, unit=unit, centres=means))))
        return arrange_by_cells(merged, nearest[merged.rows], means)

    def to_shards(
        self, unit: float | Array, targets: Array | None, kernel_targets: Array | None, arrangement: Arrangement
    ) -> ShardedSample:
        """As in the base class; the rows of a shard travel between the workers only."""
        order, bounds = arrangement.merged.rows, arrangement.bounds
        features = self._regroup(order, bounds, unit)
        parts: list[dict[Part, Any]] = [
            {"features": future, "targets": None, "kernel_targets": None} for future in features
        ]
        shards = DaskShards(parts, bounds, self._client)
        small: dict[Part, Any] = {"cells": arrangement.cells, "targets": targets, "kernel_targets": kernel_targets}
        # Small arrays go to the workers as arguments of a pass: each shard gets its own rows.
        for name, array in small.items():
            if array is not None:
                shards.keep(name, _Slice(array))
        # A subsample for starting points and landmarks, in this process.
        chosen = arrangement.random_order[: subsample_size(self.shape[1])]
        subsample = take_subsample(
            divide_columns(self.take(order[chosen]), unit), targets, kernel_targets, arrangement, chosen
        )
        return ShardedSample(shards, arrangement.merged.weights, subsample, arrangement.probes, arrangement.others)

    def _regroup(self, rows: Index, bounds: Index, unit: float | Array) -> list[Any]:
        """A future for every shard: its features, put together from the partitions that hold rows of it."""
        # Where each row is: its partition, and its place there.
        of_partition = np.searchsorted(self._partitions.bounds, rows, side="right") - 1
        local = rows - self._partitions.bounds[of_partition]
        features = []
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
            # One task per partition takes the shard's rows from it, one more puts them together.
            order = np.argsort(of_partition[start:stop], kind="stable")
            numbers, sources = local[start:stop][order], of_partition[start:stop][order]
            used, first = np.unique(sources, return_index=True)
            columns = [[self._blocks[p] for p in used], np.split(numbers, first[1:])]
            pieces = submit_all(self._client, _take_rows, columns, key="TakeRows")
            columns = [[np.argsort(order)], [unit], *([piece] for piece in pieces)]  # argsort inverts the order
            features += submit_all(self._client, _put_together, columns, key="PutTogether")
        return features


@dataclass(frozen=True)
class _Take(ShardPass[Array]):
    """The chosen rows."""

    reads = ("features",)
    per_sample = ("chosen",)
    chosen: NDArray[np.bool_]

    def __call__(self, shard: Shard) -> Array:
        return _take_rows(shard.features, self.chosen)


@dataclass(frozen=True)
class _Apply(ShardPass[Array]):
    """A function of the rows."""

    reads = ("features",)
    function: Callable[[Any], Array]

    def __call__(self, shard: Shard) -> Array:
        return self.function(shard.features)


@dataclass(frozen=True)
class _Keys(ShardPass[NDArray[np.uint64]]):
    """Hashes of the rows of X and Y."""

    reads = ("features",)
    per_sample = ("Y",)
    Y: Array | None

    def __call__(self, shard: Shard) -> NDArray[np.uint64]:
        return row_keys(shard.features, self.Y)


@dataclass(frozen=True)
class _Slice(ShardPass[Array]):
    """The shard's rows of an array of this process."""

    per_sample = ("array",)
    array: Array

    def __call__(self, shard: Shard) -> Array:
        return np.asarray(self.array)


def _read_into_file(X: Any) -> Array:
    """All rows of a dask array or frame as an array in a temporary file; one partition at a time is in memory."""
    dtype, d, n = number_type(X), empty_rows(X).shape[1], 0
    with tempfile.TemporaryFile(prefix="distreduce-") as file:
        for partition in partitions(X):
            block = check_block(compute(partition), dtype)
            try:
                file.write(block.data)
            except OSError as error:
                raise no_room(f"beyond {n} rows", error) from error
            n += len(block)
        file.flush()
        # The file has no name, and outlives its handle as long as it is mapped.
        return np.memmap(file, dtype, mode="r", shape=(n, d)) if n else np.empty((0, d), dtype)


def _extent(rows: Array) -> tuple[int, Array, Array]:
    """Number of rows, and smallest and largest number of every column."""
    low = rows.min(axis=0, initial=np.inf)  # an empty partition changes no extreme
    return len(rows), low, rows.max(axis=0, initial=-np.inf)


def _nearest_centre(rows: Array, unit: float | Array, centres: Array) -> Array:
    return nearest_centre(divide_columns(rows, unit), centres)


def _take_rows(rows: Array, which: Array) -> Array:
    return np.asarray(rows[which])


def _put_together(order: Index, unit: float | Array, *pieces: Array) -> Array:
    return np.asarray(divide_columns(np.concatenate(pieces)[order], unit))

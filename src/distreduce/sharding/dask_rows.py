"""Rows of dask arrays and frames: checked, put in order and regrouped into shards on the cluster that holds them.

Only a few numbers per row come to this process: keys, cells, weights and targets. The result does not depend on how the
rows were partitioned, and equals that of the same rows in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.numerics import divide_columns
from distreduce._utils.typing import Array, Index
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
from distreduce.sharding.merge import Arrangement, row_keys
from distreduce.sharding.row_file import no_room
from distreduce.sharding.rows import Arrays, RowMap, Rows
from distreduce.sharding.shards import Part, Shard, ShardPass, Shards


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
    """Rows of a dask array or frame (n, d) on a cluster, checked."""

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
        check_gatherable(*self.shape)
        return np.concatenate(self._client.gather(self._blocks))

    def take(self, rows: Index) -> Array:
        chosen = np.zeros(self.shape[0], dtype=bool)
        chosen[rows] = True
        found = np.concatenate(self._partitions.collect(_Apply(_take_rows, chosen)))
        # The partitions return the rows in ascending order: restore the order that was asked for.
        return np.asarray(found[np.searchsorted(np.sort(rows), rows)])

    def map(self, row_map: RowMap) -> Array:
        return self._apply(row_map)

    def _keys(self, Y: Array | None) -> NDArray[np.uint64]:
        return np.concatenate(self._partitions.collect(_Apply(row_keys, Y)))

    def _apply(self, function: Callable[[Any], Array]) -> Array:
        return np.concatenate(self._partitions.collect(_Apply(function)))

    def _cut(self, unit: float | Array, small: Arrays, arrangement: Arrangement) -> Shards:
        """The rows of a shard travel between the workers only."""
        features = self._regroup(arrangement.merged.rows, arrangement.bounds, unit)
        parts: list[dict[Part, Any]] = [
            {"features": future, "targets": None, "kernel_targets": None} for future in features
        ]
        shards = DaskShards(parts, arrangement.bounds, self._client)
        # Small arrays go to the workers as arguments of a pass: each shard gets its own rows.
        for name, array in small.items():
            if array is not None:
                shards.keep(name, _Slice(array))
        return shards

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
class _Apply(ShardPass[Array]):
    """A function of the rows and, unless `own` is None, of their rows of another array."""

    reads = ("features",)
    per_sample = ("own",)
    function: Callable[..., Array]
    own: Array | None = None

    def __call__(self, shard: Shard) -> Array:
        return self.function(shard.features, *([] if self.own is None else [self.own]))


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


def _take_rows(rows: Array, which: Array) -> Array:
    return np.asarray(rows[which])


def _put_together(order: Index, unit: float | Array, *pieces: Array) -> Array:
    return np.asarray(divide_columns(np.concatenate(pieces)[order], unit))

"""The rows of X, in this process or on a cluster, as a fit on shards asks for them."""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from distreduce._utils.numerics import blocks, divide_columns
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError
from distreduce.sharding.cells import Probes, find_centres, find_radii, n_cells, nearest_centre, sample_size
from distreduce.sharding.merge import Arrangement, Merged, arrange_by_cells, merge_by_key, row_keys
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.sharding.shards import Part, Shards, local_shards, shard_rows

# The subsample for starting points and landmarks has at most this many rows, and at most this many numbers ...
SUBSAMPLE_ROWS, SUBSAMPLE_NUMBERS = 50_000, 50_000_000
# ... but always this many rows: the out-of-sample map has as many landmarks.
LEAST_SUBSAMPLE = 2000
FILE_ROWS = 4096  # read and written at once
BLOCK_ROWS = 2048  # rows that a task works on

Arrays: TypeAlias = dict[Part, Array | None]
RowMap: TypeAlias = Callable[..., Array]  # from rows of X, and workers, to places (rows, p): a mapping.KernelMap


class Rows(ABC):
    """Rows of X, of shape (n, d), that need not lie in this process.

    `extremes` are rows that contain the smallest and the largest number of every column, and possibly other rows.
    """

    shape: tuple[int, int]
    extremes: Any

    @abstractmethod
    def take(self, rows: Index) -> Any:
        """Some rows, in the given order, in this process."""

    @abstractmethod
    def gather(self) -> Any:
        """All rows, in this process."""

    @abstractmethod
    def map(self, row_map: RowMap) -> Array:
        """Places (n, p) of all rows."""

    def merge(self, Y: Array | None, weights: Array) -> Merged:
        """Merge rows that are equal in X and in Y (n, c), and number their sites; they come in the order of hashes."""
        keys = self._apply(row_keys)
        merged = merge_by_key(keys if Y is None else keys + row_keys(Y, self.shape[1]), weights)
        return replace(merged, sites=merge_by_key(keys[merged.rows], merged.weights).group)

    def arrange(self, merged: Merged, unit: float | Array, random_state: np.random.RandomState) -> Arrangement:
        """Put merged rows in order; near is what is near in X / unit."""
        # In the order of their hashes, the first rows are a random sample.
        k = n_cells(len(merged.rows))
        sampled = divide_columns(self.take(merged.rows[: sample_size(k, self.shape[1])]), unit)
        centres = find_centres(sampled, k, random_state)
        # Of merged rows as well: X may be a file, which is read fastest from first to last.
        nearest = self._apply(partial(_nearest_centre, unit=unit, centres=centres))
        probes = Probes(centres, find_radii(sampled, centres, len(merged.rows)))
        return arrange_by_cells(merged, nearest[merged.rows], probes)

    def to_shards(
        self, unit: float | Array, targets: Array | None, kernel_targets: Array | None, arrangement: Arrangement
    ) -> ShardedSample:
        """Cut the arranged rows, divided by `unit`, into shards; the arrays have one row per distinct sample."""
        small: Arrays = {"cells": arrangement.cells, "targets": targets, "kernel_targets": kernel_targets}
        shards, merged = self._cut(unit, small | {"shares": None}, arrangement), arrangement.merged
        # A subsample for starting points and landmarks. Sparse rows are small, however many columns they have.
        size = max(LEAST_SUBSAMPLE, min(SUBSAMPLE_ROWS, SUBSAMPLE_NUMBERS // self.shape[1]))
        chosen = arrangement.random_order[: SUBSAMPLE_ROWS if sparse.issparse(self.extremes) else size]
        features = divide_columns(self.take(merged.rows[chosen]), unit)
        own = (None if Y is None else Y[chosen] for Y in (targets, kernel_targets))
        subsample = Sample(features, merged.weights[chosen], False, *own)
        return ShardedSample(shards, merged.weights, subsample, arrangement.probes)

    @abstractmethod
    def _apply(self, function: Callable[..., Array], own: Array | None = None) -> Array:
        """The results of a function of some rows, and of their rows of `own`, for all rows, one after another."""

    @abstractmethod
    def _cut(self, unit: float | Array, small: Arrays, arrangement: Arrangement) -> Shards:
        """The shards, with the features, divided by `unit`, and their rows of the small arrays as parts."""


class LocalRows(Rows):
    """Rows of an array, a sparse matrix or a memory-mapped array of this process."""

    def __init__(self, X: Any, workers: Workers = SERIAL) -> None:
        self.shape, self.extremes = X.shape, X
        self.X, self.workers = X, workers

    def take(self, rows: Index) -> Any:
        return self.X[rows]

    def gather(self) -> Any:
        return self.X

    def map(self, row_map: RowMap) -> Array:
        return row_map(self.X, self.workers)

    def _apply(self, function: Callable[..., Array], own: Array | None = None) -> Array:
        def one(block: int, n_blocks: int) -> Array:
            rows = slice(block * BLOCK_ROWS, (block + 1) * BLOCK_ROWS)
            return function(self.X[rows], *([] if own is None else [own[rows]]))

        return np.concatenate(self.workers.run(one, -(-self.shape[0] // BLOCK_ROWS)))

    def _cut(self, unit: float | Array, small: Arrays, arrangement: Arrangement) -> Shards:
        X, order = self.X, arrangement.merged.rows
        shards = local_shards(small, self.workers, arrangement.bounds)
        slices = [shard_rows(shards.bounds, number) for number in range(len(shards))]
        if isinstance(getattr(X, "base", None), np.memmap):
            # A mapped X may exceed the memory: in their new order, its rows go to a file as well.
            stored = _write_in_order(X, unit, order)
            shards.put("features", [stored[rows] for rows in slices])
        else:
            shards.put("features", [divide_columns(X[order[rows]], unit) for rows in slices])
        return shards


def _nearest_centre(rows: Any, unit: float | Array, centres: Array) -> Array:
    """A function of the module, so that it can be sent to a cluster."""
    return nearest_centre(divide_columns(rows, unit), centres)


def _write_in_order(X: Any, unit: float | Array, rows: Index) -> Array:
    """The distinct rows of X, in their new order, in a file; X is read once, from its first row to its last."""
    stored = array_in_file((len(rows), X.shape[1]), X.dtype)
    place = np.full(X.shape[0], -1, dtype=np.intp)  # −1: a duplicate, or a row without weight
    place[rows] = np.arange(len(rows))
    for block in blocks(X.shape[0], FILE_ROWS):
        numbers = place[block]
        stored[numbers[numbers >= 0]] = divide_columns(X[block][numbers >= 0], unit)
    return stored


def no_room(limit: str, error: OSError) -> InvalidInputError:
    """The error when a temporary file cannot grow `limit` ("to 100 bytes")."""
    return InvalidInputError(
        f"The temporary file for the rows of X could not grow {limit} ({error}); "
        "free space, or set TMPDIR to a folder that has it."
    )


def array_in_file(shape: tuple[int, int], dtype: Any) -> Array:
    """An array in a temporary file that is mapped into memory: the system keeps as much of it there as fits.

    The file has no name, and is gone when nothing refers to the array any more.
    """
    size = max(1, shape[0] * shape[1] * np.dtype(dtype).itemsize)
    with tempfile.TemporaryFile(prefix="distreduce-") as file:
        try:
            # Before it is mapped: writing to a mapped page for which the disk has no room ends the process.
            _reserve(file.fileno(), size)
        except OSError as error:
            raise no_room(f"to {size} bytes", error) from error
        return np.asarray(np.memmap(file, dtype, mode="r+", shape=shape))


def _reserve(descriptor: int, size: int) -> None:
    """Make a file `size` bytes long, all of which the disk has room for."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    for start in range(0, size, 2**24):  # macOS and Windows: only what is written takes its room
        os.write(descriptor, bytes(min(2**24, size - start)))

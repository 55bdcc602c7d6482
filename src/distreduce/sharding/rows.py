"""The rows of X, in this process or on a cluster, as a fit on shards asks for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from distreduce._utils.distances import divide_columns
from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index
from distreduce.sharding.merge import Merged
from distreduce.sharding.order import Arrangement, arrange, merge_rows
from distreduce.sharding.row_file import RowFile, StoredRows
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.sharding.shards import LocalShards, Part

# The subsample for starting points and landmarks has at most this many rows, and at most this many numbers ...
SUBSAMPLE_ROWS, SUBSAMPLE_NUMBERS = 50_000, 50_000_000
# ... but always this many rows: the out-of-sample map has as many landmarks.
LEAST_SUBSAMPLE = 2000
FILE_ROWS = 4096  # read and written at once


class RowMap(Protocol):
    """Maps rows of X to places (rows, p), such as :class:`distreduce.mapping.KernelMap`."""

    def __call__(self, X: Any, workers: Workers = SERIAL) -> Array:
        """Places (rows, p) of the rows of X."""
        ...


class Rows(ABC):
    """Rows of X that need not lie in this process.

    Attributes
    ----------
    shape : (n, d)
    extremes : array or sparse matrix
        Rows that contain the smallest and the largest number of every column, and possibly other rows.
    """

    shape: tuple[int, int]
    extremes: Any

    @abstractmethod
    def merge(self, Y: Array | None, weights: Array) -> Merged:
        """Merge equal rows; see :func:`distreduce.sharding.order.merge_rows`."""

    @abstractmethod
    def take(self, rows: Index) -> Any:
        """Some rows, in the given order, in this process."""

    @abstractmethod
    def arrange(self, merged: Merged, unit: float | Array, random_state: np.random.RandomState) -> Arrangement:
        """Put merged rows in order; see :func:`distreduce.sharding.order.arrange`."""

    @abstractmethod
    def to_shards(
        self, unit: float | Array, targets: Array | None, kernel_targets: Array | None, arrangement: Arrangement
    ) -> ShardedSample:
        """Cut the arranged rows, divided by `unit`, into shards; targets have one row per distinct sample."""

    @abstractmethod
    def map(self, row_map: RowMap) -> Array:
        """Places (n, p) of all rows."""

    @abstractmethod
    def gather(self) -> Any:
        """All rows, in this process."""


class LocalRows(Rows):
    """Rows of an array, a sparse matrix or a memory-mapped array of this process."""

    def __init__(self, X: Any, workers: Workers) -> None:
        self.shape, self.extremes = X.shape, X
        self.X, self.workers = X, workers

    def merge(self, Y: Array | None, weights: Array) -> Merged:
        return merge_rows(self.X, Y, weights, self.workers)

    def take(self, rows: Index) -> Any:
        return self.X[rows]

    def arrange(self, merged: Merged, unit: float | Array, random_state: np.random.RandomState) -> Arrangement:
        return arrange(self.X, merged, unit, random_state, self.workers)

    def to_shards(
        self, unit: float | Array, targets: Array | None, kernel_targets: Array | None, arrangement: Arrangement
    ) -> ShardedSample:
        """As in the base class; the shards of a memory-mapped array lie in a temporary file."""
        X, order, bounds = self.X, arrangement.merged.rows, arrangement.bounds
        # A mapped X may exceed the memory: in their new order, its rows go to a file as well.
        is_mapped = isinstance(getattr(X, "base", None), np.memmap)
        file = _write_in_order(X, unit, order) if is_mapped else None
        parts: list[dict[Part, Any]] = []
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
            rows = slice(start, stop)
            features = divide_columns(X[order[rows]], unit) if file is None else StoredRows(file, int(start), int(stop))
            parts.append(
                {
                    "features": features,
                    "cells": arrangement.cells[rows],
                    "targets": None if targets is None else targets[rows],
                    "kernel_targets": None if kernel_targets is None else kernel_targets[rows],
                }
            )
        # Sparse rows are small, however many columns they have.
        chosen = arrangement.random_order[: SUBSAMPLE_ROWS if sparse.issparse(X) else subsample_size(X.shape[1])]
        subsample = take_subsample(divide_columns(X[order[chosen]], unit), targets, kernel_targets, arrangement, chosen)
        shards = LocalShards(parts, bounds, self.workers)
        return ShardedSample(shards, arrangement.merged.weights, subsample, arrangement.probes, arrangement.others)

    def map(self, row_map: RowMap) -> Array:
        return row_map(self.X, self.workers)

    def gather(self) -> Any:
        return self.X


def subsample_size(n_features: int) -> int:
    """Number of rows in the subsample: X may be wider as well as longer than memory allows.

    Examples
    --------
    >>> subsample_size(50), subsample_size(5000), subsample_size(10**6)
    (50000, 10000, 2000)
    """
    return max(LEAST_SUBSAMPLE, min(SUBSAMPLE_ROWS, SUBSAMPLE_NUMBERS // n_features))


def take_subsample(
    features: Any, targets: Array | None, kernel_targets: Array | None, arrangement: Arrangement, chosen: Index
) -> Sample:
    """The chosen samples, whose features are given."""
    return Sample(
        features,
        arrangement.merged.weights[chosen],
        targets=None if targets is None else targets[chosen],
        kernel_targets=None if kernel_targets is None else kernel_targets[chosen],
    )


def _write_in_order(X: Any, unit: float | Array, rows: Index) -> RowFile:
    """Write the distinct rows of X, in their new order, to a file; X is read once, from its first row to its last."""
    file = RowFile(X.shape[1], X.dtype)
    place = np.full(X.shape[0], -1, dtype=np.intp)  # −1: a duplicate, or a row without weight
    place[rows] = np.arange(len(rows))
    for start in range(0, X.shape[0], FILE_ROWS):
        numbers = place[start : start + FILE_ROWS]
        block = X[start : start + FILE_ROWS][numbers >= 0]
        file.write(numbers[numbers >= 0], divide_columns(block, unit))
    return file

"""The rows of X, in this process or on a cluster, as a large fit asks for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from distreduce._utils.threads import Workers
from distreduce._utils.typing import Array
from distreduce.mapping import KernelMap
from distreduce.sharding.order import Arrangement, arrange
from distreduce.solver.fit_sharded import LargeSample, in_shards


class Rows(ABC):
    """Rows that need not lie in this process.

    Attributes
    ----------
    shape : (n, d)
    extremes : array or sparse matrix
        Rows with the smallest and the largest number of every column; any more rows do no harm.
    """

    shape: tuple[int, int]
    extremes: Any

    @abstractmethod
    def arranged(self, Y: Array | None, weights: Array, random_state: np.random.RandomState) -> Arrangement:
        """See :func:`distreduce.sharding.order.arrange`."""

    @abstractmethod
    def in_shards(
        self, unit: float, targets: Array | None, kernel_targets: Array | None, arranged: Arrangement
    ) -> LargeSample:
        """See :func:`distreduce.solver.fit_sharded.in_shards`."""

    @abstractmethod
    def mapped(self, place: KernelMap) -> Array:
        """Where the map puts every row: (n, p)."""

    @abstractmethod
    def gathered(self) -> Any:
        """All rows, in this process."""


class RowsHere(Rows):
    """Rows of an array, a sparse matrix or a memory-mapped array of this process."""

    def __init__(self, X: Any, workers: Workers) -> None:
        self.shape, self.extremes = X.shape, X
        self.X, self.workers = X, workers

    def arranged(self, Y: Array | None, weights: Array, random_state: np.random.RandomState) -> Arrangement:
        return arrange(self.X, Y, weights, random_state, self.workers)

    def in_shards(
        self, unit: float, targets: Array | None, kernel_targets: Array | None, arranged: Arrangement
    ) -> LargeSample:
        in_file = isinstance(getattr(self.X, "base", None), np.memmap)
        return in_shards(self.X, unit, targets, kernel_targets, arranged, self.workers, stored=in_file)

    def mapped(self, place: KernelMap) -> Array:
        return place(self.X, self.workers)

    def gathered(self) -> Any:
        return self.X

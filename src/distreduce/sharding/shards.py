"""Shards: rows of the sample stay where they are, passes travel to them, and small results come back.

A pass is a frozen dataclass with ``__call__(shard)``: its fields are the arguments that all shards share, `reads` names
the parts of a shard that it reads, and `per_sample` those of its fields that have one row per sample, of which a shard
gets its own rows only. A fit on shards uses :class:`Shards` alone and does not know whether threads
(:class:`LocalShards`) or a cluster (:class:`distreduce.sharding.dask_shards.DaskShards`) run its passes.

The number of shards and their borders depend on the data only, and results come in the order of the shards: sums of
them have the same bits with any number of threads, and on a cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Array, Index, Plan
from distreduce.sharding.cells import Candidates

# Fixed numbers: the borders of shards decide roundings, and must not depend on the machine.
ROWS_PER_SHARD = 2048
MAX_SHARDS = 64

Result = TypeVar("Result")
Pass = TypeVar("Pass", bound="ShardPass[Any]")
Part: TypeAlias = Literal[
    "features", "shares", "cells", "targets", "kernel_targets", "searched", "nearest", "incoming", "graph", "affinity"
]


class GraphRows(NamedTuple):
    """Rows of a sparse n×n matrix in compressed form; the pattern of the full matrix is symmetric.

    ``indptr`` (int64, one more than rows) counts from the shard's first row. ``indices`` (int32, sorted within a row)
    are numbers of samples over all shards and include the row's own number. ``values`` are float32.
    """

    indptr: Array
    indices: Array
    values: Array


class Nearest(NamedTuple):
    """The nearest samples found so far: float32 squared distances and int32 sample numbers, (rows, k) each.

    Every row is a heap with the farthest sample first. Empty places hold an infinite distance and the largest int32.
    """

    distances: Array
    indices: Array


class Incoming(NamedTuple):
    """Links to samples of a shard from the samples that found them.

    ``ends`` are numbers of samples within the shard, ``sources`` numbers over all shards, ``distances`` are float32.
    """

    ends: Array
    sources: Array
    distances: Array


class Shard:
    """One shard as a pass sees it: with the parts that the pass reads, and no others.

    `number` is its place among the shards, `rows` are its rows among those of the sample.
    """

    features: Any  # rows of X: an array or a sparse matrix
    shares: Array | None  # predicted shares of classes (rows, c): further features of the map
    cells: NDArray[np.int32]  # of every sample, sorted
    targets: Array | None  # of the supervision loss (rows, c)
    kernel_targets: Array | None  # of the dependence term (rows, c)
    searched: Candidates  # the samples that those of every cell are compared with, in the search
    nearest: Nearest  # the neighbours found so far, in the search
    incoming: tuple[Incoming, ...]  # links from other samples, in the search
    graph: GraphRows  # squared distances to the neighbours
    affinity: GraphRows  # rows of the input affinity C

    def __init__(self, number: int, rows: slice, parts: Mapping[Part, Any]) -> None:
        self.number, self.rows = number, rows
        # Only what the pass reads: reading another part is an AttributeError, on threads as on a cluster.
        for name, part in parts.items():
            setattr(self, name, part)

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True)
class ShardPass(ABC, Generic[Result]):
    """A function of one shard. It changes neither its fields nor the shard."""

    reads: ClassVar[tuple[Part, ...]] = ()
    per_sample: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def __call__(self, shard: Shard) -> Result:
        """The result for one shard; the fields in `per_sample` hold the rows of that shard only."""

    def slices(self, rows: slice) -> dict[str, Any]:
        """The fields in `per_sample`, cut to the rows of one shard; None stays None."""
        fields = {name: getattr(self, name) for name in self.per_sample}
        return {name: None if array is None else array[rows] for name, array in fields.items()}

    def without_slices(self: Pass) -> Pass:
        """The pass without the fields in `per_sample`: what all shards share."""
        return replace(self, **dict.fromkeys(self.per_sample))


@dataclass(frozen=True)
class PlanPass(ShardPass[Result]):
    """A pass that takes a plan T (n, m); `own` are the shard's rows of it."""

    per_sample: ClassVar[tuple[str, ...]] = ("own",)
    own: Plan


@dataclass(frozen=True)
class Slice(ShardPass[Array]):
    """The shard's rows of an array of this process."""

    per_sample: ClassVar[tuple[str, ...]] = ("own",)
    own: Array

    def __call__(self, shard: Shard) -> Array:
        return self.own


@dataclass(frozen=True)
class ShardFold(ABC, Generic[Result]):
    """A function of one shard and, one after another, of those that it has to see."""

    reads: ClassVar[tuple[Part, ...]] = ()

    @abstractmethod
    def __call__(self, result: Result | None, shard: Shard, other: Shard) -> Result | None:
        """The result after the next of the other shards; it starts as None."""


class Shards(ABC):
    """Parts of every shard by name; shard i holds the rows ``bounds[i]:bounds[i + 1]`` of the sample."""

    def __init__(self, parts: Sequence[Mapping[Part, Any]], bounds: Index) -> None:
        self.bounds = bounds
        self._parts = [dict(part) for part in parts]

    def __len__(self) -> int:
        return len(self._parts)

    def collect(self, shard_pass: ShardPass[Result]) -> list[Result]:
        """Results of all shards, in this process."""
        return self._bring(self._run_pass(shard_pass))

    def collect_part(self, name: Part) -> list[Any]:
        """A part of all shards, in this process."""
        return self._bring([part[name] for part in self._parts])

    @abstractmethod
    def total(self, shard_pass: ShardPass[Result]) -> Result:
        """Sum of the results in the order of the shards, without holding them all at once.

        Every result must be a new object: the sum is written into the first.
        """

    def keep(self, name: Part, shard_pass: ShardPass[Any]) -> None:
        """Leave every result with its shard, as the part `name`."""
        self.put(name, self._run_pass(shard_pass))

    def fold(self, name: Part, fold: ShardFold[Any], others: Sequence[Sequence[int]]) -> None:
        """Keep as the part `name` of shard i what the fold makes of it and the shards ``others[i]``, in that order."""
        self.put(name, self._run_fold(fold, others))

    def put(self, name: Part, results: Sequence[Any]) -> None:
        """Give each shard its result, from where the shards are, as the part `name`."""
        for part, result in zip(self._parts, results, strict=True):
            part[name] = result

    def drop(self, name: Part) -> None:
        for part in self._parts:
            part.pop(name, None)

    @abstractmethod
    def _run_pass(self, shard_pass: ShardPass[Any]) -> list[Any]:
        """Results of all shards, where the shards are."""

    @abstractmethod
    def _run_fold(self, fold: ShardFold[Any], others: Sequence[Sequence[int]]) -> list[Any]:
        """Results of all shards, where the shards are."""

    @abstractmethod
    def _bring(self, results: list[Any]) -> list[Any]:
        """Results or parts from where the shards are into this process."""


class LocalShards(Shards):
    """Shards in this process, on its threads."""

    def __init__(self, parts: Sequence[Mapping[Part, Any]], bounds: Index, workers: Workers = SERIAL) -> None:
        super().__init__(parts, bounds)
        self._workers = workers

    def total(self, shard_pass: ShardPass[Result]) -> Result:
        return add_up(self._workers.stream(self._call(shard_pass), len(self)))

    def _run_pass(self, shard_pass: ShardPass[Any]) -> list[Any]:
        return self._workers.run(self._call(shard_pass), len(self))

    def _bring(self, results: list[Any]) -> list[Any]:
        return results

    def _run_fold(self, fold: ShardFold[Any], others: Sequence[Sequence[int]]) -> list[Any]:
        def call(number: int, n_shards: int) -> Any:
            result, shard = None, self._shard(number, fold.reads)
            for other in others[number]:
                result = fold(result, shard, self._shard(other, fold.reads))
            return result

        return self._workers.run(call, len(self))

    def _call(self, shard_pass: ShardPass[Result]) -> Callable[[int, int], Result]:
        def call(number: int, n_shards: int) -> Result:
            # As on a cluster, a pass gets its own rows of its per-sample fields.
            shard = self._shard(number, shard_pass.reads)
            return replace(shard_pass, **shard_pass.slices(shard.rows))(shard)

        return call

    def _shard(self, number: int, reads: Sequence[Part]) -> Shard:
        return Shard(number, shard_rows(self.bounds, number), {name: self._parts[number][name] for name in reads})


def shard_rows(bounds: Index, number: int) -> slice:
    return slice(int(bounds[number]), int(bounds[number + 1]))


def add_up(results: Iterator[Any]) -> Any:
    """Sum of the results, in the memory of the first; no other result is held while the next is computed."""
    total = next(results)
    for result in results:
        total += result
        del result  # freed before the next one is computed
    return total


def shard_count(n: int) -> int:
    """Number of shards for n rows: a function of n alone, so that threads and workers cannot change a result."""
    return max(1, min(MAX_SHARDS, n // ROWS_PER_SHARD))


def equal_bounds(n: int) -> Index:
    return np.linspace(0, n, shard_count(n) + 1).astype(np.intp)


def local_shards(parts: Mapping[Part, Any], workers: Workers = SERIAL, bounds: Index | None = None) -> LocalShards:
    """Cut arrays that have one row per sample into shards; an array that is None is None in every shard."""
    n = next(array.shape[0] for array in parts.values() if array is not None)
    bounds = equal_bounds(n) if bounds is None else bounds
    pieces: list[dict[Part, Any]] = [
        {name: None if array is None else array[start:stop] for name, array in parts.items()}
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True)
    ]
    return LocalShards(pieces, bounds, workers)

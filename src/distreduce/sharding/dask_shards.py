"""Shards on the workers of a Dask cluster, and how a pass travels to them.

How rows become shards on the workers in the first place is in :mod:`distreduce.sharding.dask_rows`.

The parts of a shard are futures on the workers. For a pass, one task per shard is submitted. Its arguments are

- the pass without the fields that have one row per sample: the result of a task of its own, so that it leaves this
  process once and a worker can get it from another,
- the number of the shard and its rows of those fields,
- the futures of the parts that the pass reads, and of no others.

Dask prefers a worker that holds these parts, so the data stay where they are. What a worker holds, it can lose: nothing
is therefore scattered. Everything on the workers is the result of a task, and Dask computes again what a lost worker
held. Results are gathered in the order of the shards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Index
from distreduce.sharding.shards import Part, Result, Shard, ShardFold, ShardPass, Shards, add_up, shard_rows

# A task that fails is tried again this often: a worker or a connection may have been lost in the middle of it.
RETRIES = 2
# Results that are in this process at once while they are added up.
BATCH = 8


class DaskShards(Shards):
    """Shards whose parts are futures of a ``distributed.Client``, or None."""

    def __init__(self, parts: Sequence[Mapping[Part, Any]], bounds: Index, client: Any) -> None:
        super().__init__(parts, bounds)
        self._client = client

    def _bring(self, results: list[Any]) -> list[Any]:
        return list(self._client.gather(results))

    def total(self, shard_pass: ShardPass[Result]) -> Result:
        tasks = self._run_pass(shard_pass)
        batches = (self._client.gather(tasks[start : start + BATCH]) for start in range(0, len(tasks), BATCH))
        return add_up(chain.from_iterable(batches))

    def _run_pass(self, shard_pass: ShardPass[Any]) -> list[Any]:
        """Futures of the results of all shards."""
        numbers = range(len(self))
        places = [_Place.of(self.bounds, number, shard_pass) for number in numbers]
        # Columns of arguments, with one entry per shard.
        columns = [[self._share(shard_pass.without_slices())] * len(self), places]
        columns += self._futures(shard_pass.reads, numbers)
        return submit_all(self._client, _run_pass, columns, key=type(shard_pass).__name__)

    def _run_fold(self, fold: ShardFold[Any], others: Sequence[Sequence[int]]) -> list[Any]:
        """Futures: one task per pair of shards, so that a worker never holds the parts of many others at once."""
        results: list[Any] = [None] * len(self)
        places = [_Place.of(self.bounds, number) for number in range(len(self))]
        shared = self._share(fold)
        # In turn t, every shard meets the t-th of its others; shards that have fewer are done.
        for turn in range(max(map(len, others), default=0)):
            own = [number for number, seen in enumerate(others) if turn < len(seen)]
            other = [others[number][turn] for number in own]
            columns = [[shared] * len(own), [results[number] for number in own]]
            columns += [[places[number] for number in own], [places[number] for number in other]]
            columns += [*self._futures(fold.reads, own), *self._futures(fold.reads, other)]
            found = submit_all(self._client, _run_fold, columns, key=type(fold).__name__)
            for number, result in zip(own, found, strict=True):
                results[number] = result
        return results

    def _share(self, value: Any) -> Any:
        """A future of the value, as the result of a task."""
        return submit_all(self._client, _identity, [[value]], key=f"Share{type(value).__name__}")[0]

    def _futures(self, reads: Sequence[Part], numbers: Sequence[int]) -> list[list[Any]]:
        return [[self._parts[number][name] for number in numbers] for name in reads]


@dataclass(frozen=True)
class _Place:
    """Number and rows of a shard, and its rows of the fields of a pass.

    An object of a class of its own: Dask would look for tasks and futures in a bare tuple or dict.
    """

    number: int
    rows: slice
    slices: dict[str, Any]

    @classmethod
    def of(cls, bounds: Index, number: int, shard_pass: ShardPass[Any] | None = None) -> _Place:
        rows = shard_rows(bounds, number)
        return cls(number, rows, {} if shard_pass is None else shard_pass.slices(rows))


def submit_all(client: Any, function: Callable[..., Any], columns: Sequence[Sequence[Any]], *, key: str) -> list[Any]:
    """Futures of the function's results, one for each row of the columns of arguments; `key` names the tasks."""
    import dask

    # Vectors with one number per sample are arguments by intent; Dask warns about arguments from ten megabytes on.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        task = partial(_call, function)
        # Not pure: Dask would hash all arguments to find equal tasks.
        return list(client.map(task, *columns, key=key, pure=False, retries=RETRIES))


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """On a worker: the function's result, with BLAS on one thread as in a fit in memory."""
    with single_threaded_blas():
        return function(*arguments)


def _run_pass(shard_pass: ShardPass[Result], place: _Place, *parts: Any) -> Result:
    shard = Shard(place.number, place.rows, dict(zip(shard_pass.reads, parts, strict=True)))
    # The pass with the shard's rows of its per-sample fields, which travelled separately.
    return replace(shard_pass, **place.slices)(shard)


def _run_fold(fold: ShardFold[Result], result: Result | None, own: _Place, other: _Place, *parts: Any) -> Result | None:
    n = len(fold.reads)
    shard = Shard(own.number, own.rows, dict(zip(fold.reads, parts[:n], strict=True)))
    return fold(result, shard, Shard(other.number, other.rows, dict(zip(fold.reads, parts[n:], strict=True))))


def _identity(value: Any) -> Any:
    return value

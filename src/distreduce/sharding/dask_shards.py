"""Shards on the workers of a Dask cluster, and how a pass travels to them.

How rows become shards on the workers in the first place is in :mod:`distreduce.sharding.dask_rows`.

The parts of a shard are futures on the workers. For a pass, one task is submitted for each thread that has shards:
a fit makes hundreds of passes, and a task of its own for every shard costs more than the shard. The arguments are

- the pass without the fields that have one row per sample: for more than a few tasks the result of a task of its own,
  so that it leaves this process once and a worker can get it from another,
- the numbers of the shards and their rows of those fields,
- the futures of the parts that the pass reads, and of no others.

A task goes to the worker that holds these parts, so the data stay where they are. What a worker holds, it can lose:
nothing is therefore scattered. Everything on the workers is the result of a task, and Dask computes again what a lost
worker held. Results are gathered in the order of the shards.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from distreduce._utils.numerics import blocks
from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Index
from distreduce.sharding.shards import Part, Result, Shard, ShardFold, ShardPass, Shards, add_up, shard_rows

# A task that fails is tried again this often: a worker or a connection may have been lost in the middle of it.
RETRIES = 2
# Results of shards, and bytes of them, that are in this process at once while they are added up.
BATCH, BATCH_BYTES = 8, 2**26
# Up to so many tasks get what all shards share as an argument: as the result of another task it comes later.
FEW_TASKS = 4
# Other shards whose parts a worker holds at once in a fold.
TOGETHER = 4


class DaskShards(Shards):
    """Shards whose parts are futures of a ``distributed.Client``, or None."""

    def __init__(self, parts: Sequence[Mapping[Part, Any]], bounds: Index, client: Any) -> None:
        super().__init__(parts, bounds)
        self._client = client
        self._batches: dict[type, int] = {}  # shards of a pass whose results were small enough to come at once

    def _bring(self, results: list[Any]) -> list[Any]:
        return list(self._client.gather(results))

    def collect(self, shard_pass: ShardPass[Result]) -> list[Result]:
        (tasks,) = self._submit(shard_pass, len(self))
        return self._gather(tasks)

    def total(self, shard_pass: ShardPass[Result]) -> Result:
        kind = type(shard_pass)
        total = add_up(chain.from_iterable(map(self._gather, self._submit(shard_pass, self._batches.get(kind, BATCH)))))
        # How large the results of a pass are is known from its second run on.
        self._batches[kind] = max(BATCH, BATCH_BYTES // max(1, getattr(total, "nbytes", BATCH_BYTES)))
        return total

    def _submit(self, shard_pass: ShardPass[Result], size: int) -> list[list[Any]]:
        """Futures of the numbered results for each `size` shards, one for each thread that has some of them."""
        shared, threads, key = shard_pass.without_slices(), self._by_thread(shard_pass.reads), type(shard_pass).__name__
        if len(threads) > FEW_TASKS or size < len(self):
            shared = self._share(shared)
        batches: list[list[Any]] = []
        for batch in blocks(len(self), size):
            batches.append([])
            for worker, shards in threads:
                own = [number for number in shards if batch.start <= number < batch.stop]
                places = [_Place.of(self.bounds, number, shard_pass) for number in own]
                columns = [[argument] for argument in (shared, places, *self._futures(shard_pass.reads, own))]
                if own:
                    batches[-1] += submit_all(self._client, _run_passes, columns, key=key, worker=worker)
        return batches

    def _by_thread(self, reads: Sequence[Part]) -> list[tuple[str | None, list[int]]]:
        """Shards by the worker that holds most of what is read of them (else: has fewest), and by its threads."""
        numbers, of_worker = range(len(self)), defaultdict[str | None, list[int]](list)
        held = [[part for (part,) in self._futures(reads, [number]) if part is not None] for number in numbers]
        where = self._client.who_has(list(chain.from_iterable(held)))
        for number, parts in zip(numbers, held, strict=True):
            holders = Counter(chain.from_iterable(where[part.key] for part in parts))
            best = max(holders, key=lambda name: (holders[name], -len(of_worker[name]), name), default=None)
            of_worker[best].append(number)
        # What nobody holds, because it is still to be computed, is a task for each shard.
        threads = {None: len(numbers)} | self._client.nthreads()
        return [
            (worker, own[first :: threads.get(worker, 1)])
            for worker, own in of_worker.items()
            for first in range(min(threads.get(worker, 1), len(own)))
        ]

    def _gather(self, tasks: list[Any]) -> list[Any]:
        """The results of the tasks in this process, in the order of the shards."""
        return [result for _, result in sorted(chain.from_iterable(self._client.gather(tasks)), key=itemgetter(0))]

    def _run_pass(self, shard_pass: ShardPass[Any]) -> list[Any]:
        """Futures of the results of all shards, a task for each: these results are parts of their own."""
        numbers = range(len(self))
        places = [_Place.of(self.bounds, number, shard_pass) for number in numbers]
        # Columns of arguments, with one entry per shard.
        columns = [[self._share(shard_pass.without_slices())] * len(self), places]
        columns += self._futures(shard_pass.reads, numbers)
        return submit_all(self._client, _run_pass, columns, key=type(shard_pass).__name__)

    def _run_fold(self, fold: ShardFold[Any], others: Sequence[Sequence[int]]) -> list[Any]:
        """Futures: a task per shard and `TOGETHER` others, so that a worker never holds the parts of many at once."""
        results: list[Any] = [None] * len(self)
        places = [_Place.of(self.bounds, number) for number in range(len(self))]
        shared = self._share(fold)
        # In every turn, a shard meets the next of its others; shards that have fewer are done.
        for turn in blocks(max(map(len, others), default=0), TOGETHER):
            own = [number for number, seen in enumerate(others) if turn.start < len(seen)]
            met = [others[number][turn] for number in own]
            columns = [[shared] * len(own), [results[number] for number in own], [places[number] for number in own]]
            columns += [[[places[other] for other in seen] for seen in met], *self._futures(fold.reads, own)]
            columns += [[self._futures([name], seen)[0] for seen in met] for name in fold.reads]
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


def submit_all(
    client: Any, function: Callable[..., Any], columns: Sequence[Sequence[Any]], *, key: str, worker: str | None = None
) -> list[Any]:
    """Futures of the function's results, one for each row of the columns of arguments; `key` names the tasks.

    `worker` is where they run, unless it is lost.
    """
    import dask

    # Vectors with one number per sample are arguments by intent; Dask warns about arguments from ten megabytes on.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        task = partial(_call, function)
        # Not pure: Dask would hash all arguments to find equal tasks.
        places = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return list(client.map(task, *columns, key=key, pure=False, retries=RETRIES, **places))


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """On a worker: the function's result, with BLAS on one thread as in a fit in memory."""
    with REUSED_MEMORY, single_threaded_blas():
        return function(*arguments)


class _ReusedMemory:
    """While tasks run in this process, arrays take the memory of earlier ones, which has been cleared once.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536: glibc then gives every array from 128 kB on new pages,
    and a fit takes twice as long.
    """

    def __init__(self) -> None:
        self._lock, self._running = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            self._set_thresholds(2**25, 2**28)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:  # as the worker was: it promises to give memory back
                mmap, trim = (os.environ.get(f"MALLOC_{name}_THRESHOLD_", 2**17) for name in ("MMAP", "TRIM"))
                self._set_thresholds(int(mmap), int(trim))

    def _set_thresholds(self, mmap: int, trim: int) -> None:
        """Give arrays from `mmap` bytes on pages of their own, and more than `trim` free bytes back: mallopt(3)."""
        if sys.platform == "linux" and "MALLOC_TRIM_THRESHOLD_" in os.environ:
            mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda option, value: None)  # not in every C library
            mallopt(-3, mmap)
            mallopt(-1, trim)


REUSED_MEMORY = _ReusedMemory()


def _run_passes(shard_pass: ShardPass[Result], places: list[_Place], *parts: list[Any]) -> list[tuple[int, Result]]:
    """Numbers of shards and their results; `parts` are lists with an entry per shard."""
    own = zip(places, *parts, strict=True)
    return [(place.number, _run_pass(shard_pass, place, *rest)) for place, *rest in own]


def _run_pass(shard_pass: ShardPass[Result], place: _Place, *parts: Any) -> Result:
    shard = Shard(place.number, place.rows, dict(zip(shard_pass.reads, parts, strict=True)))
    # The pass with the shard's rows of its per-sample fields, which travelled separately.
    return replace(shard_pass, **place.slices)(shard)


def _run_fold(
    fold: ShardFold[Result], result: Result | None, own: _Place, others: list[_Place], *parts: Any
) -> Result | None:
    """The result after these others; `parts` are those of the shard, and then lists with an entry per other shard."""
    n = len(fold.reads)
    shard = Shard(own.number, own.rows, dict(zip(fold.reads, parts[:n], strict=True)))
    for other, *read in zip(others, *parts[n:], strict=True):
        result = fold(result, shard, Shard(other.number, other.rows, dict(zip(fold.reads, read, strict=True))))
    return result


def _identity(value: Any) -> Any:
    return value

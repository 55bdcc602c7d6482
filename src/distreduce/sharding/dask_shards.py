"""Shards on the workers of a Dask cluster.

What a worker holds, it can lose. Nothing is therefore scattered: all that goes to the workers is argument of a task,
and Dask computes again what a lost worker held. Results are gathered in the order of the shards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Index
from distreduce.sharding.shards import summed

# A task that fails is tried again this often: a worker or a connection may have been lost in the middle of it.
RETRIES = 2
LINGER_SECONDS = 10.0
# Results that are here at once while they are added up.
BATCH = 8


class DaskShards:
    """:class:`distreduce.sharding.shards.Shards` whose parts are futures of a ``distributed.Client``, or None."""

    def __init__(self, parts: Sequence[dict[str, Any]], bounds: Index, client: Any) -> None:
        self.bounds = bounds
        self._parts = [dict(part) for part in parts]
        self._client = client

    def __len__(self) -> int:
        return len(self._parts)

    def collect(
        self, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()
    ) -> list[Any]:
        """The function's result for every shard."""
        return list(self._client.gather(self._tasks(function, of, shared, rows)))

    def total(self, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()) -> Any:
        """The sum of the function's results, in the order of the shards."""
        tasks = self._tasks(function, of, shared, rows)
        batches = (self._client.gather(tasks[start : start + BATCH]) for start in range(0, len(tasks), BATCH))
        return summed(chain.from_iterable(batches))

    def keep(
        self, name: str, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()
    ) -> None:
        """Keep the function's result for every shard as its part `name`."""
        for part, result in zip(self._parts, self._tasks(function, of, shared, rows), strict=True):
            part[name] = result

    def fold(
        self, name: str, function: Callable[..., Any], of: Sequence[str], others: Sequence[Sequence[int]], *shared: Any
    ) -> None:
        """Keep what the function makes of every shard and, one after another, of the shards it has to see.

        A task for each of them, so that a worker never holds the parts of many other shards at once.
        """
        results: list[Any] = [None] * len(self)
        given = self._given(shared)
        for turn in range(max(map(len, others), default=0)):
            pairs = [(shard, seen[turn]) for shard, seen in enumerate(others) if turn < len(seen)]
            columns = [[results[shard] for shard, _ in pairs]]
            columns += [[self._parts[shard][part] for shard, _ in pairs] for part in of]
            columns += [[self._parts[other][part] for _, other in pairs] for part in of]
            columns += [[Given(pair) for pair in pairs], [given] * len(pairs)]
            for (shard, _), result in zip(pairs, submit_all(self._client, function, columns), strict=True):
                results[shard] = result
        for part, result in zip(self._parts, results, strict=True):
            part[name] = result

    def drop(self, name: str) -> None:
        """Forget a part of every shard."""
        for part in self._parts:
            part.pop(name, None)

    def _tasks(
        self, function: Callable[..., Any], of: Sequence[str], shared: tuple[Any, ...], rows: Sequence[Any]
    ) -> list[Any]:
        borders = list(zip(self.bounds[:-1], self.bounds[1:], strict=True))
        columns = [[part[name] for part in self._parts] for name in of]
        columns.append([Given(tuple(array[start:stop] for array in rows)) for start, stop in borders])
        columns.append([self._given(shared)] * len(self))
        return submit_all(self._client, function, columns)

    def _given(self, shared: tuple[Any, ...]) -> Any:
        """What all shards share, as the result of one task: it travels once, and a worker has it from another."""
        return submit_all(self._client, _itself, [[Given((Given(shared),))]])[0]


@dataclass(frozen=True)
class Given:
    """Arguments of a function, as they are: Dask would look for tasks and futures in a bare tuple."""

    values: tuple[Any, ...]


def submit_all(client: Any, function: Callable[..., Any], columns: Sequence[Sequence[Any]]) -> list[Any]:
    """Futures of the function's results, one for each row of the columns of arguments."""
    import dask

    # Vectors of one number a sample are arguments by intent; Dask warns of such from ten megabytes on.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        task = partial(_called, function)
        name = getattr(function, "__name__", "task")
        return list(client.map(task, *columns, key=name, pure=False, retries=RETRIES))


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """In a worker: the function's result, with BLAS on one thread as in a fit in memory."""
    values = [value for argument in arguments for value in _unpacked(argument)]
    with single_threaded_blas():
        _LINGERING.renew()
        return function(*values)


def _unpacked(argument: Any) -> tuple[Any, ...]:
    return argument.values if isinstance(argument, Given) else (argument,)


def _itself(value: Any) -> Any:
    return value


class _LingeringLimit:
    """Holds ``single_threaded_blas`` between tasks too: to enter it takes 10 ms, more than many a task does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = ExitStack()
        self._timer: threading.Timer | None = None

    def renew(self) -> None:
        """Hold the limit from now on for ``LINGER_SECONDS``."""
        with self._lock:
            if self._timer is None:
                self._held.enter_context(single_threaded_blas())
            else:
                self._timer.cancel()
            self._timer = threading.Timer(LINGER_SECONDS, self._release)
            self._timer.daemon = True
            self._timer.start()

    def _release(self) -> None:
        with self._lock:
            if self._timer is not None and threading.current_thread() is self._timer:  # not renewed meanwhile
                self._timer = None
                self._held.close()


_LINGERING = _LingeringLimit()

"""The sample side in shards of rows: data stay where they are, functions go to them, small results come back.

A fit that runs over shards sees them through :class:`Shards` alone. The shards' number and their borders depend on the
data only, and results are returned in the order of the shards: what is summed from them has the same bits with any
number of threads, and on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from distreduce._utils.threads import SERIAL, Workers
from distreduce._utils.typing import Index

ROWS_PER_SHARD = 2048
MOST_SHARDS = 64


class Shards(Protocol):
    """Named parts of every shard (its rows of X, of the graph, ...), and what can be done with them.

    Attributes
    ----------
    bounds : (s + 1,) array
        Shard i holds the rows ``bounds[i]:bounds[i + 1]`` of the sample.

    A function that is given to a method is a module-level function (it travels to other processes) that changes none
    of its arguments. It is called as ``function(*parts, *slices, *shared)``: the parts named in `of`, the shard's
    slices of the arrays `rows` (which have one row a sample), and the objects `shared`, the same for all shards.
    """

    bounds: Index

    def __len__(self) -> int:
        """Number of shards."""
        ...

    def collect(
        self, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()
    ) -> list[Any]:
        """The function's result for every shard, brought here."""
        ...

    def total(self, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()) -> Any:
        """The sum of the function's results, new objects, in the order of the shards; they are not held all at once."""
        ...

    def keep(
        self, name: str, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()
    ) -> None:
        """The same, but every result stays with its shard, as the part `name`."""
        ...

    def fold(
        self, name: str, function: Callable[..., Any], of: Sequence[str], others: Sequence[Sequence[int]], *shared: Any
    ) -> None:
        """Keep ``result = function(result, *own parts, *the other's parts, own number, other's number, *shared)``.

        The result of shard i starts as None and is carried over the shards ``others[i]``, in that order.
        """
        ...

    def drop(self, name: str) -> None:
        """Forget a part of every shard."""
        ...


class LocalShards:
    """Shards in this process, on its threads."""

    def __init__(self, parts: Sequence[dict[str, Any]], bounds: Index, workers: Workers = SERIAL) -> None:
        self.bounds = bounds
        self._parts = list(parts)
        self._workers = workers

    def __len__(self) -> int:
        return len(self._parts)

    def collect(
        self, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()
    ) -> list[Any]:
        """The function's result for every shard."""
        return self._workers.run(self._of_shard(function, of, shared, rows), len(self))

    def total(self, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()) -> Any:
        """The sum of the function's results, in the order of the shards."""
        return summed(self._workers.stream(self._of_shard(function, of, shared, rows), len(self)))

    def _of_shard(
        self, function: Callable[..., Any], of: Sequence[str], shared: Sequence[Any], rows: Sequence[Any]
    ) -> Callable[[int, int], Any]:
        def one(shard: int, n_shards: int) -> Any:
            here = slice(self.bounds[shard], self.bounds[shard + 1])
            parts = [self._parts[shard][name] for name in of]
            return function(*parts, *(array[here] for array in rows), *shared)

        return one

    def keep(
        self, name: str, function: Callable[..., Any], of: Sequence[str], *shared: Any, rows: Sequence[Any] = ()
    ) -> None:
        """Keep the function's result for every shard as its part `name`."""
        for part, result in zip(self._parts, self.collect(function, of, *shared, rows=rows), strict=True):
            part[name] = result

    def fold(
        self, name: str, function: Callable[..., Any], of: Sequence[str], others: Sequence[Sequence[int]], *shared: Any
    ) -> None:
        """Keep what the function makes of every shard and, one after another, of the shards it has to see."""

        def one(shard: int, n_shards: int) -> Any:
            result, own = None, [self._parts[shard][part] for part in of]
            for other in others[shard]:
                result = function(result, *own, *(self._parts[other][part] for part in of), shard, other, *shared)
            return result

        for part, result in zip(self._parts, self._workers.run(one, len(self)), strict=True):
            part[name] = result

    def drop(self, name: str) -> None:
        """Forget a part of every shard."""
        for part in self._parts:
            part.pop(name, None)


def summed(results: Iterator[Any]) -> Any:
    """Their sum in the memory of the first; no other is held while the next is made."""
    total = next(results)
    for result in results:
        total += result
        del result
    return total


def shard_count(n: int) -> int:
    """Number of shards for n rows: a function of n alone, so that threads and workers cannot change a result."""
    return max(1, min(MOST_SHARDS, n // ROWS_PER_SHARD))


def cut(n: int) -> Index:
    """Borders of equal shards of n rows."""
    return np.linspace(0, n, shard_count(n) + 1).astype(np.intp)


def local_shards(workers: Workers = SERIAL, bounds: Index | None = None, **arrays: Any) -> LocalShards:
    """Shards of arrays that have one row a sample; an array that is None is None in every shard.

    Examples
    --------
    >>> import numpy as np
    >>> shards = local_shards(features=np.arange(6.0).reshape(3, 2))
    >>> [float(part.sum()) for part in shards.collect(np.asarray, ["features"])]
    [15.0]
    """
    n = next(array.shape[0] for array in arrays.values() if array is not None)
    bounds = cut(n) if bounds is None else bounds
    parts = [
        {name: None if array is None else array[start:stop] for name, array in arrays.items()}
        for start, stop in zip(bounds[:-1], bounds[1:], strict=True)
    ]
    return LocalShards(parts, bounds, workers)

"""Dask arrays and frames that a user passes: checked, regrouped into shards on the cluster, or mapped block by block.

Only a few numbers per row come to this process: keys, cells, weights and targets. The result does not depend on how the
rows were partitioned, and equals that of the same rows in memory. Dask is imported lazily, only when a Dask collection
is passed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from distreduce._utils.numerics import divide_columns
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.sharding.dask_shards import RETRIES, DaskShards, submit_all
from distreduce.sharding.merge import Arrangement
from distreduce.sharding.rows import Arrays, RowMap, Rows, no_room
from distreduce.sharding.shards import Part, Shard, ShardPass, Shards, Slice

# Largest size of X, in bytes, that is gathered in this process.
MAX_GATHERED = 2_000_000_000
# Fitted attributes with one entry or more per training sample that no prediction needs: they do not travel.
_PER_SAMPLE = ("coupling_", "labels_", "embedding_")


def is_dask(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr")


def compute(value: Any) -> Any:
    """Compute a Dask collection; return any other value as it is."""
    return value.compute() if is_dask(value) else value


def current_client() -> Any:
    distributed = sys.modules.get("distributed")  # not imported: there is no client
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:  # Dask's answer when no client exists
        return None


def empty_rows(X: Any) -> Any:
    """Zero rows with the columns and types of a dask array or frame (n, d)."""
    columns = getattr(X, "columns", None)
    if columns is not None:
        return X._meta
    if getattr(X, "ndim", None) != 2 or np.isnan(X.shape[1]):
        raise InvalidTypeError(
            f"X must be a dask array of two dimensions with a known number of columns, or a dask DataFrame; "
            f"got {type(X).__name__} of shape {getattr(X, 'shape', 'unknown')}."
        )
    return np.empty((0, X.shape[1]), dtype=X.dtype)


def partitions(X: Any) -> list[Any]:
    """Delayed blocks of complete rows."""
    if hasattr(X, "columns"):
        return list(X.to_delayed())
    return list(X.rechunk({1: -1}).to_delayed().ravel())  # a row must not be divided among blocks


def number_type(X: Any) -> Any:
    """float32 if all columns are, else float64: as for arrays in memory."""
    return check_block(empty_rows(X), [np.float64, np.float32]).dtype


def check_block(block: Any, dtype: Any) -> Array:
    """A partition's rows as numbers, in C order; errors are those of arrays in memory."""
    try:
        # A single partition may be empty.
        return np.asarray(check_array(block, dtype=dtype, order="C", ensure_min_samples=0, input_name="X"))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{error} This is about a partition of X.") from error


def gather(X: Any) -> Any:
    """All rows of a dask array or frame in this process, if they fit; return anything else as it is."""
    if not is_dask(X):
        return X
    from dask.delayed import delayed

    n, d = X.shape[0], empty_rows(X).shape[1]
    if not isinstance(n, int | np.integer):  # the lengths of the partitions are not known
        n = delayed(sum)([delayed(len)(block) for block in partitions(X)]).compute()
    check_gatherable(n, d)
    return X.compute()


def check_gatherable(n: int, d: int) -> None:
    """Raise InvalidInputError if n rows of d numbers are too many for one process."""
    if 8 * n * d > MAX_GATHERED:
        raise InvalidInputError(
            f"X has {n} rows of {d} numbers, and this fit needs them in one place, which takes more than "
            f"{MAX_GATHERED / 1e9:g} GB; give a sample of the rows, or use SDR with n_prototypes, which leaves them "
            "on the cluster."
        )


def predict_by_blocks(estimator: Any, method: str, X: Any, /, **options: Any) -> Any:
    """The result of ``estimator.method(X, **options)`` as a lazy dask array, or several: one block per partition.

    Nothing is computed before the caller asks for it. The number of features and their names are checked at once.
    """
    from dask.delayed import delayed

    check_is_fitted(estimator)
    empty = empty_rows(X)
    validate_data(estimator, empty, reset=False, skip_check_array=True)
    # The result of a row of zeros shows the shapes and types of the outputs.
    zeros = np.zeros((1, empty.shape[1]))
    one_row = pd.DataFrame(zeros, columns=empty.columns) if isinstance(empty, pd.DataFrame) else zeros
    examples = _outputs(estimator, method, one_row, options, ())
    # traverse=False: Dask must not search the model for collections. pure=False: nor hash it.
    model = delayed(_without_samples(estimator), traverse=False, pure=False)
    task = delayed(_outputs, nout=len(examples), pure=False)
    if_empty = tuple(example[:0] for example in examples)  # estimators reject zero rows, but a partition may have none
    blocks = [task(model, method, block, options, if_empty) for block in partitions(X)]
    # A frame does not know the lengths of its partitions.
    lengths = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    arrays = [_concatenate([block[i] for block in blocks], lengths, example) for i, example in enumerate(examples)]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _concatenate(blocks: list[Any], lengths: tuple[float, ...], example: Array) -> Any:
    """One lazy array from the delayed blocks of one output; `example` is a row of it."""
    import dask.array

    da: Any = dask.array  # typed only in part
    arrays = [
        da.from_delayed(block, (length, *example.shape[1:]), meta=example[:0])
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def _outputs(
    estimator: Any, method: str, rows: Any, options: dict[str, Any], if_empty: tuple[Array, ...]
) -> tuple[Array, ...]:
    """The method's result for the rows of one partition, as a tuple of arrays; `if_empty` for no rows."""
    if len(rows) == 0:
        return if_empty
    result = getattr(estimator, method)(rows, **options)
    return tuple(map(np.asarray, result)) if isinstance(result, tuple) else (np.asarray(result),)


def _without_samples(estimator: Any) -> Any:
    model = copy(estimator)  # a shallow copy: the estimator of the user keeps its attributes
    for name in _PER_SAMPLE:
        vars(model).pop(name, None)
    return model


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
        found = self._apply(_take_rows, chosen)
        # The partitions return the rows in ascending order: restore the order that was asked for.
        return np.asarray(found[np.searchsorted(np.sort(rows), rows)])

    def map(self, row_map: RowMap) -> Array:
        return self._apply(row_map)

    def _apply(self, function: Callable[..., Array], own: Array | None = None) -> Array:
        return np.concatenate(self._partitions.collect(_Apply(function, own)))

    def _cut(self, unit: float | Array, small: Arrays, arrangement: Arrangement) -> Shards:
        """The rows of a shard travel between the workers only."""
        features = self._regroup(arrangement.merged.rows, arrangement.bounds, unit)
        parts: list[dict[Part, Any]] = [
            {"features": future, "targets": None, "kernel_targets": None, "shares": None} for future in features
        ]
        shards = DaskShards(parts, arrangement.bounds, self._client)
        # Small arrays go to the workers as arguments of a pass: each shard gets its own rows.
        for name, array in small.items():
            if array is not None:
                shards.keep(name, Slice(array))
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

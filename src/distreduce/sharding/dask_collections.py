"""dask arrays and frames that a user passes: read, checked, and embedded or predicted lazily, block by block.

Dask is imported lazily, only when a Dask collection is passed.
"""

from __future__ import annotations

import sys
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError, InvalidTypeError

# Largest size of X, in bytes, that is gathered in this process.
MAX_GATHERED = 2_000_000_000
# Fitted attributes with one entry or more per training sample that no prediction needs: they do not travel.
_PER_SAMPLE = ("coupling_", "labels_", "embedding_")


def is_dask(value: Any) -> bool:
    """Whether the object is a Dask collection.

    Examples
    --------
    >>> is_dask(np.ones(3))
    False
    """
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr")


def compute(value: Any) -> Any:
    """Compute a Dask collection; return any other value as it is."""
    return value.compute() if is_dask(value) else value


def current_client() -> Any:
    """The current client of a Dask cluster, or None."""
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

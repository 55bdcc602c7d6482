"""What is needed of dask's arrays and frames; dask itself is imported by those only who give such objects."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError, InvalidTypeError

# Rows that are brought to one place whole take no more than this.
MOST_GATHERED = 2_000_000_000


def is_dask(value: Any) -> bool:
    """Whether the object is one of dask's collections.

    Examples
    --------
    >>> is_dask(np.ones(3))
    False
    """
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr")


def brought(value: Any) -> Any:
    """The value itself, or what a dask collection computes to."""
    return value.compute() if is_dask(value) else value


def current_client() -> Any:
    """The current client of a Dask cluster, or None."""
    distributed = sys.modules.get("distributed")  # who has not imported it has no client
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def empty_rows(X: Any) -> Any:
    """No rows, with the columns and types of a dask array or frame (n, d)."""
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
    """Delayed blocks of whole rows."""
    if hasattr(X, "columns"):
        return list(X.to_delayed())
    return list(X.rechunk({1: -1}).to_delayed().ravel())


def number_type(X: Any) -> Any:
    """float32 if all columns are, else float64: as for arrays in memory."""
    return checked(empty_rows(X), [np.float64, np.float32]).dtype


def checked(block: Any, dtype: Any) -> Array:
    """A partition's rows as numbers, in C order; the errors are those of arrays in memory."""
    try:
        return np.asarray(check_array(block, dtype=dtype, order="C", ensure_min_samples=0, input_name="X"))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{error} This is about a partition of X.") from error


def gathered(X: Any) -> Any:
    """All rows of a dask array or frame in this process, if there is room for them; anything else as it is."""
    if not is_dask(X):
        return X
    from dask.delayed import delayed

    n, d = X.shape[0], empty_rows(X).shape[1]
    if not isinstance(n, int | np.integer):  # the lengths of the partitions are not known
        n = delayed(sum)([delayed(len)(block) for block in partitions(X)]).compute()
    refuse_gathering(n, d)
    return X.compute()


def refuse_gathering(n: int, d: int) -> None:
    """Raise an error that says what to do where the rows are too many to be brought to one place."""
    if 8 * n * d > MOST_GATHERED:
        raise InvalidInputError(
            f"X has {n} rows of {d} numbers, and this fit needs them in one place, which takes more than "
            f"{MOST_GATHERED / 1e9:g} GB; give a sample of the rows, or use SDR with n_prototypes, which leaves them "
            "on the cluster."
        )

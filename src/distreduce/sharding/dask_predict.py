"""Embeddings and predictions of dask arrays and frames: lazy arrays, a block for each partition."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.typing import Array
from distreduce.sharding.dask_collections import empty_rows, partitions

# Attributes of a number or more a training sample that no embedding or prediction needs: they need not travel.
_OF_SAMPLES = ("coupling_", "labels_", "embedding_")


def by_blocks(estimator: Any, method: str, X: Any, **options: Any) -> Any:
    """What ``estimator.method(X, **options)`` gives for the rows of X: a dask array, or several.

    Nothing is computed before the caller asks for it. The number of features and their names are checked at once.
    """
    from dask.delayed import delayed

    check_is_fitted(estimator)
    empty = empty_rows(X)
    validate_data(estimator, empty, reset=False, skip_check_array=True)
    examples = _outputs(estimator, method, _one_row(empty), options, ())
    model = delayed(_without_samples(estimator), traverse=False, pure=False)
    task = delayed(_outputs, nout=len(examples), pure=False)
    blocks = [
        task(model, method, block, options, tuple(example[:0] for example in examples)) for block in partitions(X)
    ]
    lengths = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    arrays = [_joined([block[i] for block in blocks], lengths, example) for i, example in enumerate(examples)]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _joined(blocks: list[Any], lengths: tuple[float, ...], example: Array) -> Any:
    """One lazy array from the delayed blocks of one output; `example` is a row of it."""
    import dask.array

    da: Any = dask.array  # in part without types
    arrays = [
        da.from_delayed(block, (length, *example.shape[1:]), meta=example[:0])
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def _outputs(
    estimator: Any, method: str, rows: Any, options: dict[str, Any], of_none: tuple[Array, ...]
) -> tuple[Array, ...]:
    """The method's result for the rows of one partition as a tuple of arrays; `of_none` is that of no rows."""
    if len(rows) == 0:
        return of_none
    result = getattr(estimator, method)(rows, **options)
    return tuple(map(np.asarray, result)) if isinstance(result, tuple) else (np.asarray(result),)


def _one_row(empty: Any) -> Any:
    """A row of zeros: its result tells shapes and types."""
    zeros = np.zeros((1, empty.shape[1]))
    return pd.DataFrame(zeros, columns=empty.columns) if isinstance(empty, pd.DataFrame) else zeros


def _without_samples(estimator: Any) -> Any:
    model = copy(estimator)
    for name in _OF_SAMPLES:
        vars(model).pop(name, None)
    return model

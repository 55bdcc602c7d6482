"""Files of one's own as data sets: features must be numbers; targets are read as on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.datasets.dataset import Dataset
from distreduce.exceptions import InvalidInputError
from distreduce.tables.cells import LARGEST_EXACT
from distreduce.tables.reading import read_table
from distreduce.tables.target import read_target


def load_own_file(path: Path, target: str | list[str] | None) -> Dataset:
    """Read a file as a data set; see :func:`distreduce.datasets.load`."""
    targets = [target] if isinstance(target, str) else list(target or ())
    table = read_table(path, targets, default_to_last=target is None)
    # Often the index that pandas wrote: as a feature it would be the row number, which can leak the target.
    if table.unnamed:
        raise InvalidInputError(
            f"{path.name} has a column without a name ({table.unnamed[0]!r} here). If it counts rows, save without it "
            "(DataFrame.to_csv(index=False)); otherwise give it a name."
        )
    # Identifiers that float64 merges would look like repeated values.
    for name, column in table.frame.items():
        if pd.api.types.is_integer_dtype(column) and ((column > LARGEST_EXACT) | (column < -LARGEST_EXACT)).any():
            raise InvalidInputError(
                f"Column {name!r} of {path.name} has whole numbers beyond 2^53, which float64 would round; if it is an "
                "identifier, drop it."
            )
    read = read_target(table.targets, "auto", path.name)
    y, class_names = (read.y.to_numpy(), None) if read.task == "regression" else _encode_labels(read.y)
    return Dataset(
        path.name, _features(table.features, path.name), y, read.task, tuple(table.features.columns),
        tuple(table.targets.columns), class_names, table.image_shape, " ".join(table.notes),
    )  # fmt: skip


def _features(table: pd.DataFrame, where: str) -> Array:
    """Return numbers and booleans as float64, NaN where missing; raise InvalidInputError for any other column."""
    types = pd.api.types
    # No guessing here, unlike on the command line: the user has Python to encode what is not a number.
    other = [
        name for name, column in table.items() if not types.is_numeric_dtype(column) or types.is_complex_dtype(column)
    ]
    if other:
        example = next(iter(table[other[0]].dropna()), None)
        more = f" (and so do {len(other) - 1} more: {', '.join(other[1:6])})" if len(other) > 1 else ""
        raise InvalidInputError(
            f"Column {other[0]!r} of {where} holds {example!r}, which is not a number{more}. Turn it into numbers "
            "(pandas.get_dummies for categories, a difference in days for dates), or drop it."
        )
    return np.column_stack([column.to_numpy(dtype=np.float64, na_value=np.nan) for _, column in table.items()])


def _encode_labels(labels: pd.Series) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Return labels as numbers, NaN where unknown, and the names of those that are text."""
    known = labels.notna().to_numpy()
    values, names = np.array(labels[known].tolist()), None  # tolist: integers or texts, not objects
    if values.dtype.kind == "U":  # text; whole numbers are kept as they are
        classes, values = np.unique(values, return_inverse=True)
        names = tuple(str(label) for label in classes)
    if known.all():
        return values.astype(np.int64), names
    y = np.full(len(labels), np.nan)  # int64 has no NaN
    y[known] = values
    return y, names

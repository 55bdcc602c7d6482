"""Columns of one's own tables as numbers: features exactly or not at all, targets by the task they look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.text import did_you_mean
from distreduce._utils.typing import Array
from distreduce.datasets.bundle import Task
from distreduce.estimators._targets import guess_task
from distreduce.exceptions import InvalidInputError

LARGEST_EXACT = 2**53  # whole numbers beyond it are rounded in float64


def choose_columns(table: pd.DataFrame, target: str | Sequence[str], where: str) -> list[str]:
    """The target columns as a list; each must be there, and a feature must remain."""
    wanted = [target] if isinstance(target, str) else list(target)
    known = [str(column) for column in table.columns]
    for name in wanted:
        if name not in known:
            listed = ", ".join(known[:30]) + (", …" if len(known) > 30 else "")
            raise InvalidInputError(f"{where} has no column {name!r}. {did_you_mean(name, known)}It has {listed}.")
    if not wanted or len(set(wanted)) < len(wanted):
        raise InvalidInputError(f"target={target!r} must name at least one column, and none twice.")
    if len(wanted) == len(known):
        raise InvalidInputError(f"{where} has no column besides the target ({', '.join(known)}); features are needed.")
    return wanted


def feature_matrix(table: pd.DataFrame, where: str) -> Array:
    """Columns as float64: numbers and booleans as they are, missing ones as NaN, all else is refused."""
    strangers = [name for name in table.columns if not _is_number(table[name])]
    if strangers:
        name = strangers[0]
        example = next(iter(table[name].dropna()), None)
        more = f" (and so do {len(strangers) - 1} more: {', '.join(strangers[1:6])})" if len(strangers) > 1 else ""
        raise InvalidInputError(
            f"Column {name!r} of {where} holds {example!r}, which is no number{more}. Turn it into numbers "
            "(pandas.get_dummies for categories, a difference in days for dates), or drop it."
        )
    return np.column_stack([_floats(table[name], where) for name in table.columns])


def read_target(columns: pd.DataFrame, where: str) -> tuple[NDArray[Any], Task, tuple[str, ...] | None]:
    """y, the task it looks like, and the names of its classes where they are no numbers.

    Unknown targets (empty cells) are NaN; rules of the task: :func:`distreduce.estimators._targets.guess_task`.
    """
    if columns.shape[1] > 1:
        strangers = [name for name in columns if not _is_number(columns[name])]
        if strangers:
            raise InvalidInputError(
                f"Target {strangers[0]!r} of {where} is no number; several targets must be numbers."
            )
        return np.column_stack([_floats(columns[name], where) for name in columns]), "regression", None
    column = columns.iloc[:, 0]
    known = column.notna().to_numpy()
    if not known.any():
        raise InvalidInputError(f"Target {column.name!r} of {where} has no values at all; name another column.")
    task = guess_task(column[known].to_numpy()[:, None])
    if task == "regression":
        return _floats(column, where), task, None
    if _is_number(column) and not pd.api.types.is_bool_dtype(column):
        return _whole(_floats(column, where)), task, None
    labels, codes = np.unique(column[known].astype(str).to_numpy(dtype=object), return_inverse=True)
    y = np.full(len(column), np.nan)
    y[known] = codes
    return _whole(y), task, tuple(str(label) for label in labels)


def _is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)


def _floats(column: pd.Series, where: str) -> Array:
    if pd.api.types.is_integer_dtype(column) and ((column > LARGEST_EXACT) | (column < -LARGEST_EXACT)).any():
        raise InvalidInputError(
            f"Column {column.name!r} of {where} has whole numbers beyond 2^53, which float64 would round; if it is an "
            "identifier, drop it."
        )
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _whole(y: Array) -> NDArray[Any]:
    """Labels as int64, where none is unknown or too large for it."""
    return y.astype(np.int64) if (np.abs(y) <= LARGEST_EXACT).all() else y

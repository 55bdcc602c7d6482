"""The targets of a table: their task, their values, and which rows have none."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce.estimators._targets import guess_task
from distreduce.exceptions import InvalidInputError
from distreduce.tables.values import is_number, numbers, refuse_spoilt_numbers, texts, words_among_numbers

Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Target:
    """y as the estimators take it.

    Attributes
    ----------
    y : Series or DataFrame
        Numbers with NaN, or labels (whole numbers or texts) with None, where the target is unknown.
    task : {"regression", "classification"}
    unknown_words : tuple of str
        Words among numbers, which stand for an unknown target.
    """

    y: Any
    task: Task
    unknown_words: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the targets."""
        return [str(self.y.name)] if isinstance(self.y, pd.Series) else [str(name) for name in self.y.columns]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Rows that have a target."""
        rows = self.y.notna().to_numpy()
        return np.asarray(rows if rows.ndim == 1 else rows.all(axis=1))

    @property
    def labels(self) -> NDArray[Any] | None:
        """Classes of all rows, None for numbers."""
        return self.y.to_numpy() if self.task == "classification" else None

    def values(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Targets of rows that have one, as a plain array."""
        part = self.y.iloc[rows].to_numpy()
        return np.array(part.tolist()) if self.task == "classification" else part

    def rows(self, rows: NDArray[np.intp]) -> Target:
        """The targets of these rows."""
        return Target(self.y.iloc[rows].reset_index(drop=True), self.task, self.unknown_words)


def read_target(columns: pd.DataFrame, task: str, where: str) -> Target:
    """Targets from their columns; rules of "auto": :func:`distreduce.estimators._targets.guess_task`.

    Few words among many numbers are unknown targets, unless classes are asked for: then they are classes.
    """
    words: tuple[str, ...] = ()
    if task != "classification":
        columns, words = _without_words(columns)
    return replace(_read(columns, task, where), unknown_words=words)


def _without_words(columns: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    kept: dict[Hashable, pd.Series] = {}
    words: set[str] = set()
    for name in columns:
        found = words_among_numbers(columns[name])
        cells = texts(columns[name]) if found else columns[name]
        kept[name] = pd.to_numeric(cells.where(~cells.isin(found))).astype(np.float64) if found else cells
        words.update(found)
    return pd.DataFrame(kept), tuple(sorted(words))


def _read(columns: pd.DataFrame, task: str, where: str) -> Target:
    for name in columns:
        _check(columns[name], where)
    if columns.shape[1] > 1:
        if task == "classification":
            raise InvalidInputError("Several targets must be numbers; name one target for classes.")
        table = pd.DataFrame({name: _numbers(columns[name], where) for name in columns})
        return _refuse_constant(Target(table.where(table.notna().all(axis=1)), "regression"), where)
    column = columns.iloc[:, 0]
    known = texts(column).notna() if not is_number(column) else column.notna()
    guessed = guess_task(column[known].to_numpy()[:, None])
    if (guessed if task == "auto" else task) == "classification":
        return _refuse_constant(_classes(column), where)
    values = pd.Series(_numbers(column, where), name=column.name)
    return _refuse_constant(Target(values, "regression"), where)


def _check(column: pd.Series, where: str) -> None:
    if not texts(column).notna().any():
        raise InvalidInputError(f"Target {column.name!r} of {where} has no values at all; name another column.")
    if not (is_number(column) or pd.api.types.is_bool_dtype(column)):
        if pd.api.types.is_datetime64_any_dtype(column):
            raise InvalidInputError(
                f"Target {column.name!r} of {where} holds dates; name a column of numbers or classes."
            )
        known = texts(column).dropna()
        if known.nunique() > 2 and known.nunique() > len(known) / 2:
            refuse_spoilt_numbers(known)
            raise InvalidInputError(
                f"Target {column.name!r} of {where} is text with {known.nunique()} values in {len(known)} rows: too "
                "many for classes. Name another column."
            )


def _numbers(column: pd.Series, where: str) -> NDArray[np.float64]:
    try:
        return numbers(column.astype(np.float64) if pd.api.types.is_bool_dtype(column) else column)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} It is a target of {where} that should be a number.") from error


def _classes(column: pd.Series) -> Target:
    """Whole numbers stay numbers, so that they sort as such; everything else is text."""
    cells = texts(column)
    whole = is_number(column) and cells.dropna().str.fullmatch(r"-?\d{1,15}").all()
    labels = [None if pd.isna(cell) else int(cell) if whole else cell for cell in cells]
    return Target(pd.Series(labels, index=cells.index, dtype=object, name=column.name), "classification")


def _refuse_constant(target: Target, where: str) -> Target:
    known = target.y[target.known]
    for name in target.names:
        part = known if isinstance(known, pd.Series) else known[name]
        if part.nunique() < 2:
            value = part.iloc[0] if len(part) else "none"
            raise InvalidInputError(
                f"Target {name!r} of {where} has a single value ({value!r}) in all rows; there is nothing to learn "
                "from it. Name another column."
            )
    return target

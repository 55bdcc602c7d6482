"""The targets of a file: their task, their values, and which rows have one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce.estimators import _targets
from distreduce.estimators._targets import Task, as_array, find_unlabelled, guess_task, holds_dates
from distreduce.exceptions import InvalidCellError, InvalidInputError
from distreduce.tables.cells import (
    are_mostly_numbers,
    are_numbers,
    find_date_format,
    find_unit,
    is_number,
    is_plain_number,
    reject_malformed_numbers,
    to_levels,
    to_numbers,
    to_text,
)


@dataclass(frozen=True)
class Target:
    """y as the estimators take it: numbers (NaN where unknown), or labels (integers or texts; None where unknown).

    `unknown_words` are words among numbers that count as unknown, `notes` tell what was guessed and how to change it.
    """

    y: Any
    task: Task
    unknown_words: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the targets."""
        return [str(self.y.name)] if isinstance(self.y, pd.Series) else [str(name) for name in self.y.columns]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a target."""
        rows = self.y.notna().to_numpy()
        return np.asarray(rows if rows.ndim == 1 else rows.all(axis=1))

    @property
    def labels(self) -> NDArray[Any] | None:
        """Labels of all rows; None for regression."""
        return self.y.to_numpy() if self.task == "classification" else None

    def values(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return the targets of rows that have one, as a plain array."""
        part = self.y.iloc[rows].to_numpy()
        return np.array(part.tolist()) if self.task == "classification" else part

    def rows(self, rows: NDArray[np.intp]) -> Target:
        return replace(self, y=self.y.iloc[rows].reset_index(drop=True))


def read_target(columns: pd.DataFrame, task: str, where: str, *, known: bool = False) -> Target:
    """Read the columns of targets; ``task="auto"`` is decided by the rule of the estimators.

    Unless classification is asked for, text that is numbers is read as numbers, and a few words among them as unknown.
    Targets that a fit knows may be few, or all the same.
    """
    # Text to numbers, unless classes are asked for.
    words: set[str] = set()
    if task != "classification":
        read = {name: _parse_numbers(columns[name], known) for name in columns}
        words = {word for _, found in read.values() for word in found}
        columns = pd.DataFrame({name: column for name, (column, _) in read.items()})
    for name in columns:
        _check_cells(columns[name], where, classes=task == "classification")
    if columns.shape[1] > 1:
        if task == "classification":
            raise InvalidInputError("Several targets must be numbers; name one target for classes.")
        numbers = pd.DataFrame({name: _read_numbers(columns[name], where) for name in columns})
        # The estimators want all targets of a row or none.
        target = Target(numbers.where(numbers.notna().all(axis=1)), "regression")
    else:
        target = _read_one(columns.iloc[:, 0], task, where)
    if not known:
        _reject_constant(target, where)
    return replace(target, unknown_words=tuple(sorted(words)))


def _read_one(column: pd.Series, task: str, where: str) -> Target:
    """Read a single target; the notes name the option that changes each guess."""
    name, known = column.name, column[to_text(column).notna()]  # blank text is unknown, too
    found, doubt = task, ""
    if task == "auto":
        found, doubt = guess_task(known, as_array(known)[:, None], np.ones(len(known)))
    if found == "regression":
        note = f"Target {name!r} has {doubt}, read as numbers; --task classification reads them as classes."
        numbers = pd.Series(_read_numbers(column, where), name=name)
        return Target(numbers, "regression", notes=(note,) if doubt else ())
    labels, notes = _read_labels(column), []
    unlabelled = find_unlabelled(labels.to_numpy(), labels.notna().to_numpy())
    if unlabelled.any() and task == "classification":
        labels = labels.where(labels.isna(), labels.astype(str))  # as text, -1 is a class for the estimators, too
    elif unlabelled.any():
        labels = labels.mask(unlabelled, None)
        notes.append(
            f"{unlabelled.sum()} rows have the target -1, read as unknown as in scikit-learn; --task classification "
            "reads it as a class."
        )
    if task == "auto" and is_number(column) and labels.nunique() > 2:
        notes.append(
            f"Target {name!r} has {labels.nunique()} distinct whole numbers, read as classes; --task regression reads "
            "them as numbers."
        )
    return Target(labels, "classification", notes=tuple(notes))


def _parse_numbers(column: pd.Series, known: bool) -> tuple[pd.Series, tuple[str, ...]]:
    """Return a column of texts as numbers, and the words among them that stand for a gap, such as "unknown" and "n/a".

    At most a tenth of the distinct texts may be words, and none of them may have a digit: ``12 kg`` or ``7A`` is a
    mistake or a code. Other columns are returned as they are.
    """
    typed = is_number(column) or pd.api.types.is_bool_dtype(column) or holds_dates(as_array(column))
    if typed or isinstance(column.dtype, pd.CategoricalDtype):
        return column, ()
    cells = to_text(column)
    distinct = cells.dropna().drop_duplicates()
    unit = find_unit(distinct)
    words = distinct[~are_numbers(distinct, unit)]
    if not len(distinct) or not are_mostly_numbers(distinct) or words.str.contains(r"\d").any():
        return column, ()
    if not known and len(distinct) < 3 and not is_plain_number(distinct).all():  # "5%", "10%": two classes
        return column, ()
    return pd.Series(to_numbers(cells.where(~cells.isin(words)), unit), cells.index, name=column.name), tuple(words)


def _check_cells(column: pd.Series, where: str, *, classes: bool) -> None:
    target, known = f"Target {column.name!r} of {where}", to_text(column).dropna()
    if not len(known):
        raise InvalidInputError(f"{target} has no values at all; name another column.")
    if (is_number(column) and column.dtype.kind not in "mM") or pd.api.types.is_bool_dtype(column):
        return
    # As classes, they would have fewer than two rows each on average.
    many = known.nunique() > 2 and known.nunique() > len(known) / 2
    # Dates that repeat are not classes either, unless they are few or asked for.
    often = not classes and known.nunique() > _targets.MAX_NUMBERED_CLASSES
    if holds_dates(as_array(column)) or ((many or often) and find_date_format(known) is not None):
        raise InvalidInputError(f"{target} holds dates; name a column of numbers or classes.")
    if many:
        reject_malformed_numbers(known)  # a better message, if they are numbers with a typo
        raise InvalidInputError(
            f"{target} is text with {known.nunique()} values in {len(known)} rows: too many for classes. Name another "
            "column."
        )


def _read_numbers(column: pd.Series, where: str) -> NDArray[np.float64]:
    try:
        return to_numbers(column.astype(np.float64) if pd.api.types.is_bool_dtype(column) else column)
    except InvalidCellError as error:
        raise InvalidCellError(f"{error} It is a target of {where} that should be a number.", error.row) from error


def _read_labels(column: pd.Series) -> pd.Series:
    """Return whole numbers as integers, so that they sort as such, and everything else as text."""
    cells = to_levels(column)
    # Up to 15 digits, which float64 holds exactly.
    whole = is_number(column) and cells.dropna().str.fullmatch(r"-?\d{1,15}").all()
    labels = [None if pd.isna(cell) else int(cell) if whole else cell for cell in cells]
    return pd.Series(labels, index=cells.index, dtype=object, name=column.name)


def _reject_constant(target: Target, where: str) -> None:
    known = pd.DataFrame(target.y[target.known])
    for name in known:
        values = known[name].unique().tolist()
        if len(values) < 2:
            value = values[0] if values else "none"
            raise InvalidInputError(
                f"Target {name!r} of {where} has a single value ({value!r}) in all rows; there is nothing to learn "
                "from it. Name another column."
            )

"""Columns that are not features but say how rows are split and counted: groups, times and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from distreduce._utils.text import count_of
from distreduce._utils.typing import Array, Index
from distreduce.estimators._validate import are_counts
from distreduce.exceptions import InvalidInputError
from distreduce.tables.cells import to_levels, to_numbers
from distreduce.tables.columns import Date, Number, guess_column
from distreduce.tables.reading import require_column

TIME_BLOCKS = 10  # neighbours in time are alike: of few blocks, few rows have one in another block


@dataclass(frozen=True)
class Aside:
    """Names of the columns for groups, times and weights; None where there is none."""

    group: str | None = None
    time: str | None = None
    weights: str | None = None

    @property
    def not_features(self) -> dict[str, str]:
        """The columns that are left out of X, and why; a time is a feature as well."""
        found = {self.group: "names the group of a row", self.weights: "weight of a row"}
        return {name: reason for name, reason in found.items() if name is not None}

    def check(self, frame: pd.DataFrame, targets: list[str], where: str) -> None:
        """Raise InvalidInputError unless each name is a column of the file, and none the target."""
        if self.group is not None and self.time is not None:
            raise InvalidInputError("Rows are held out by --group or by --time, not by both; leave one of them out.")
        for option, name in (("--group", self.group), ("--time", self.time), ("--weights", self.weights)):
            if name in targets:
                raise InvalidInputError(f"{option} {name!r} is the target; name another column.")
            if name is not None:
                require_column(frame, name, where)


@dataclass(frozen=True)
class AsideValues:
    """What these columns hold for every row of the file; None where there is no such column."""

    groups: Index | None = None
    times: Array | None = None
    weights: Array | None = None

    @classmethod
    def read(cls, frame: Mapping[str, pd.Series], names: Aside) -> AsideValues:
        """Read the columns; raise InvalidInputError, with the option, for what they cannot hold."""
        readers = ((names.group, read_groups), (names.time, read_times), (names.weights, read_weights))
        return cls(*(None if name is None else read(frame[name]) for name, read in readers))

    def notes(self, names: Aside) -> list[str]:
        """Say how the weights were read."""
        if self.weights is None:
            return []
        if are_counts(self.weights):
            return [f"--weights {names.weights!r} counts equal rows: {self.weights.sum():,.0f} in all."]
        return [f"--weights {names.weights!r} has fractions: scaled to a mean of one, as importance and not as counts."]

    @property
    def blocks(self) -> Index | None:
        """Rows that leave together when models leave rows out: groups, or times cut into `TIME_BLOCKS` parts."""
        if self.times is None:
            return self.groups
        return np.searchsorted(np.sort(self.times), self.times) * TIME_BLOCKS // len(self.times)


def read_groups(column: pd.Series) -> Index:
    """Return the number of each row's group; a row without one is a group of its own."""
    codes, found = pd.factorize(to_levels(column))
    if len(found) < 2:
        raise InvalidInputError(f"--group {column.name!r} has {count_of(len(found), 'value')}: name a column of two.")
    if len(found) == len(column):
        raise InvalidInputError(f"--group {column.name!r} has another value in every row, so that it groups nothing.")
    alone = codes < 0
    codes[alone] = len(found) + np.arange(alone.sum())
    return np.asarray(codes, dtype=np.intp)


def read_times(column: pd.Series) -> Array:
    """Return the days or numbers that order the rows."""
    rule = guess_column(column)
    if not isinstance(rule, Date | Number):  # a date is a number, too
        raise InvalidInputError(
            f"--time {column.name!r} holds neither dates nor numbers that differ ({rule.describe()}), so that no row "
            "is the latest."
        )
    times = rule.read(column)
    if np.isnan(times).any():
        raise InvalidInputError(
            f"--time {column.name!r} is empty in {count_of(int(np.isnan(times).sum()), 'row')}; fill the cells, or "
            "leave these rows out of the file."
        )
    return times


def read_weights(column: pd.Series) -> Array:
    """Return weights, at least zero: whole numbers count equal rows, others are scaled to a mean of one."""
    weights = to_numbers(column)
    wrong = np.isnan(weights) | (weights < 0)
    if wrong.any() or not weights.sum() > 0:
        what = f"is negative or empty in {count_of(int(wrong.sum()), 'row')}" if wrong.any() else "is zero in every row"
        raise InvalidInputError(f"--weights {column.name!r} {what}; give each row a number of at least zero.")
    return weights if are_counts(weights) else weights / weights[weights > 0].mean()

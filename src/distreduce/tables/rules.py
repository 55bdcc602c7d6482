"""What becomes of a column: one class a kind. Each reads cells (NaN = missing) and turns them into columns of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from distreduce._utils.typing import Array
from distreduce.tables.values import DATE_FORMATS, numbers, read_days, texts, truths

MISSING = "missing"
OTHER = "other"


@dataclass(frozen=True)
class Number:
    """(x − center) / scale; missing cells become `fill`, and with `flag` a second column says 1 where they were."""

    kind: ClassVar[str] = "number"
    name: str
    center: float
    scale: float
    fill: float
    flag: bool = False

    def read(self, column: pd.Series) -> Array:
        """Numbers; a text that is none is an error."""
        return numbers(column)

    def encode(self, values: Array) -> Array:
        """(n, 1), or (n, 2) with the flag."""
        missing = np.isnan(values)
        scaled = (np.where(missing, self.fill, values) - self.center) / self.scale
        return np.column_stack([scaled, missing] if self.flag else [scaled])

    def columns(self) -> list[str]:
        """Names of the columns of X."""
        return [self.name, f"{self.name} {MISSING}"] if self.flag else [self.name]

    def describe(self) -> str:
        """A few words for people."""
        return "number" + (", with gaps" if self.flag else "")


@dataclass(frozen=True)
class Boolean:
    """0 and 1; missing cells become `fill`, the more frequent of both."""

    kind: ClassVar[str] = "boolean"
    name: str
    fill: float
    flag: bool = False

    def read(self, column: pd.Series) -> Array:
        """0 and 1; anything else is an error."""
        return truths(column)

    def encode(self, values: Array) -> Array:
        """(n, 1), or (n, 2) with the flag."""
        return Number(self.name, 0.0, 1.0, self.fill, self.flag).encode(values)

    def columns(self) -> list[str]:
        """Names of the columns of X."""
        return Number(self.name, 0.0, 1.0, self.fill, self.flag).columns()

    def describe(self) -> str:
        """A few words for people."""
        return "true or false" + (", with gaps" if self.flag else "")


@dataclass(frozen=True)
class Category:
    """A 0/1 column a level, one for all rarer levels if there were any, and one for missing cells if there were any."""

    kind: ClassVar[str] = "category"
    name: str
    levels: tuple[str, ...]
    other: bool = False
    flag: bool = False

    def read(self, column: pd.Series) -> Array:
        """Number of the level; that of a level which is not known is ``len(levels)``."""
        cells = texts(column)
        codes = cells.map({level: float(code) for code, level in enumerate(self.levels)}).astype(np.float64)
        return np.asarray(codes.mask(cells.notna() & codes.isna(), float(len(self.levels))))

    def encode(self, values: Array) -> Array:
        """(n, levels + other + missing); an unknown level is all zeros where there is no column for others."""
        known = np.arange(len(self.levels) + self.other)
        parts = [values[:, None] == known]
        if self.flag:
            parts.append(np.isnan(values)[:, None])
        return np.hstack(parts).astype(np.float64)

    def columns(self) -> list[str]:
        """Names of the columns of X."""
        labels = [*self.levels, *([OTHER] * self.other), *([MISSING] * self.flag)]
        return [f"{self.name} = {label}" for label in labels]

    def describe(self) -> str:
        """A few words for people."""
        rest = (" and others" if self.other else "") + (", with gaps" if self.flag else "")
        return f"category, {len(self.levels)} levels{rest}"


@dataclass(frozen=True)
class Date:
    """Days, scaled as a number; and sine and cosine of the place in each cycle (of so many days)."""

    kind: ClassVar[str] = "date"
    name: str
    layout: str
    center: float
    scale: float
    fill: float
    cycles: tuple[float, ...] = ()
    flag: bool = False

    def read(self, column: pd.Series) -> Array:
        """Days since 1970; what is no date is an error."""
        return read_days(column, self.layout)

    def encode(self, values: Array) -> Array:
        """(n, 1 + 2·cycles), and the flag."""
        filled = np.where(np.isnan(values), self.fill, values)
        turns = [2 * np.pi * filled / cycle for cycle in self.cycles]
        waves = [wave(turn) for turn in turns for wave in (np.sin, np.cos)]
        return np.column_stack(
            [Number(self.name, self.center, self.scale, self.fill, self.flag).encode(values), *waves]
        )

    def columns(self) -> list[str]:
        """Names of the columns of X."""
        waves = [f"{self.name} {wave}{cycle:g}" for cycle in self.cycles for wave in ("sin", "cos")]
        return Number(self.name, self.center, self.scale, self.fill, self.flag).columns() + waves

    def describe(self) -> str:
        """A few words for people."""
        return f"date, {DATE_FORMATS.get(self.layout, self.layout)}" + (", with gaps" if self.flag else "")


@dataclass(frozen=True)
class Dropped:
    """A column that is left out, and why."""

    kind: ClassVar[str] = "dropped"
    name: str
    reason: str

    def columns(self) -> list[str]:
        """None."""
        return []

    def describe(self) -> str:
        """A few words for people."""
        return f"left out: {self.reason}"


Used = Number | Boolean | Category | Date
Rule = Used | Dropped

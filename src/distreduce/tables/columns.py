"""The kind of each column, guessed from its cells, and how cells of this kind become columns of X."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.tables.cells import (
    DATE_FORMATS,
    LARGEST_EXACT,
    are_codes,
    are_mostly_numbers,
    are_numbers,
    drop_unknown,
    find_date_format,
    find_unit,
    is_number,
    is_plain_number,
    parse_days,
    reject_malformed_numbers,
    strip_unit,
    to_booleans,
    to_days,
    to_levels,
    to_numbers,
    to_text,
    write_number,
)

MISSING, OTHER = "missing", "other"
MAX_LEVELS = 30
MAX_RARE, MAX_RARE_LENGTH = 1000, 200  # levels without a column, and their characters, that a recipe may list
MIN_SHUFFLED = 20  # rows: in fewer rows, a feature may hold consecutive numbers by chance
Advice = tuple[str, str, str]
# How to ask for a category, for a column to be left out and to be kept: at the command line and in Python.
COMMAND_LINE: Advice = ("--category {!r}", "--drop {!r}", "--keep {!r}")
IN_PYTHON: Advice = ("categories=[{!r}]", "leave_out=[{!r}]", "keep=[{!r}]")
# Names of identifiers, such as id, customer_id, PassengerId, "order no".
IDENTIFIER = re.compile(r"(.*[\W_])?(id|ids|uid|nr|no)|index|number|key|row|.*[a-z]I[Dd]", re.DOTALL)
CYCLES = (365.2425, 7.0, 1.0)  # days in a year, a week, a day


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A column that is left out, and why."""

    kind: ClassVar[str] = "dropped"
    name: str
    reason: str

    def columns(self) -> list[str]:
        """Return the names of the columns of X: none."""
        return []

    def describe(self) -> str:
        """Return what the column is taken as, in a few words."""
        return f"left out: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Boolean:
    """0 and 1; missing cells become `fill`, the more frequent one, and `flag` adds a column that marks them with 1."""

    kind: ClassVar[str] = "boolean"
    name: str
    fill: float
    flag: bool = False

    def read(self, column: pd.Series) -> Array:
        """Return cells as float64 codes, NaN where missing; raise InvalidInputError for cells of another kind."""
        return to_booleans(column)

    def encode(self, codes: Array) -> Array:
        """Return codes as columns of X: (n, 1), or (n, 2) with the flag."""
        missing = np.isnan(codes)
        # The flag keeps a filled cell apart from one that truly has this value.
        scaled = self._scaled(np.where(missing, self.fill, codes))
        return np.column_stack([scaled, missing] if self.flag else [scaled])

    def columns(self) -> list[str]:
        """Return the names of the columns of X."""
        return [self.name, f"{self.name} {MISSING}"] if self.flag else [self.name]

    def describe(self) -> str:
        """Return what the column is taken as, in a few words."""
        return self._noun() + (", with gaps" if self.flag else "")

    def _scaled(self, codes: Array) -> Array:
        return codes

    def _noun(self) -> str:
        return "true or false"


@dataclass(frozen=True, kw_only=True)
class Number(Boolean):
    """(x − center) / scale; missing cells as for a boolean. Cells may carry a `unit`, such as % or lbs."""

    kind: ClassVar[str] = "number"
    center: float
    scale: float
    unit: str = ""

    def read(self, column: pd.Series) -> Array:
        return to_numbers(column, self.unit)

    def count_units(self, column: pd.Series) -> int:
        cells = () if is_number(column) else to_text(column).dropna()
        return sum(strip_unit(cell)[1] == self.unit for cell in cells)

    def _scaled(self, codes: Array) -> Array:
        return (codes - self.center) / self.scale

    def _noun(self) -> str:
        return f"number in {self.unit}" if self.unit else "number"


@dataclass(frozen=True, kw_only=True)
class Date(Number):
    """Days since 1970, scaled as a number; and sine and cosine of the phase in each of `cycles`, lengths in days."""

    kind: ClassVar[str] = "date"
    layout: str
    cycles: tuple[float, ...] = ()
    last: float | None = None  # day of the fit; older recipes do not have it

    def read(self, column: pd.Series) -> Array:
        return to_days(column, self.layout)

    def count_later(self, codes: Array) -> int:
        """Count the dates after the last one of the fit, which the model can only extrapolate to."""
        return 0 if self.last is None else int((codes > self.last).sum())

    def encode(self, codes: Array) -> Array:
        """Return codes as columns of X: (n, 1 + 2·cycles), and one more with the flag."""
        # Sine and cosine make the last day of a cycle a neighbour of the first.
        filled = np.where(np.isnan(codes), self.fill, codes)
        turns = [2 * np.pi * filled / cycle for cycle in self.cycles]
        waves = [wave(turn) for turn in turns for wave in (np.sin, np.cos)]
        return np.column_stack([super().encode(codes), *waves])

    def columns(self) -> list[str]:
        waves = [f"{self.name} {wave}{cycle:g}" for cycle in self.cycles for wave in ("sin", "cos")]
        return super().columns() + waves

    def _noun(self) -> str:
        return f"date, {DATE_FORMATS.get(self.layout, self.layout)}"


@dataclass(frozen=True, kw_only=True)
class Category:
    """One 0/1 column per level, one for all rarer levels if `other`, and one for missing cells if `flag`.

    `rare` lists the rarer levels, so that they can be told from unknown ones; it is empty if they are too many.
    """

    kind: ClassVar[str] = "category"
    name: str
    levels: tuple[str, ...]
    other: bool = False
    flag: bool = False
    rare: tuple[str, ...] = ()

    def read(self, column: pd.Series) -> Array:
        """Return cells as the index of their level; an unknown level has the index ``len(levels)``.

        A level that is a number matches however it is written: pandas writes the code 7 as 7.0 if another is missing.
        """
        cells = to_levels(column)
        # A recipe of an older version may have 7 and 7.0 as two levels.
        codes = cells.map({write_number(level): float(code) for code, level in enumerate(self.levels)})
        return np.asarray(codes.astype(np.float64).mask(cells.notna() & codes.isna(), float(len(self.levels))))

    def count_unknown(self, column: pd.Series, codes: Array) -> Counter[str]:
        """Count the cells of each level that the fit did not know; of none if rare levels cannot be told apart."""
        if self.other and not self.rare:
            return Counter()
        cells = to_levels(column[codes == len(self.levels)])
        return Counter(cells[~cells.isin(self.rare)])

    def encode(self, codes: Array) -> Array:
        """Return (n, levels + other + missing); an unknown level is all zeros if there is no column for others."""
        # The index of an unknown level, len(levels), falls into the column for others if there is one.
        parts = [codes[:, None] == np.arange(len(self.levels) + self.other)]
        if self.flag:
            parts.append(np.isnan(codes)[:, None])
        return np.hstack(parts).astype(np.float64)

    def columns(self) -> list[str]:
        """Return the names of the columns of X."""
        labels = [*self.levels, *([OTHER] * self.other), *([MISSING] * self.flag)]
        return [f"{self.name} = {label}" for label in labels]

    def describe(self) -> str:
        """Return what the column is taken as, in a few words."""
        others, gaps = " and others" if self.other else "", ", with gaps" if self.flag else ""
        return f"category, {len(self.levels)} levels{others}{gaps}"


Used = Boolean | Number | Date | Category
Column = Used | Dropped


def guess_column(column: pd.Series, *, as_category: bool = False, advice: Advice = COMMAND_LINE) -> Column:
    """Guess the kind of one column; infinite numbers count as missing. `advice` names options in errors.

    Left out are columns that are empty or constant, integers that float64 would round, and text in which every cell
    (or more than half of them, if there are more than `MAX_LEVELS` levels) is different.
    """
    name = str(column.name)
    # Columns that have a dtype already are not guessed from their text.
    if not as_category and is_number(column):
        return _guess_number(column)
    if not as_category and pd.api.types.is_datetime64_any_dtype(column):
        return _guess_date(column, "ISO8601")
    cells = to_levels(column)
    known = cells[cells.notna()]
    levels = known.value_counts()  # most frequent first; ties in the order of the rows
    if len(levels) < 2:
        return Dropped(name=name, reason=_constant(levels.index[0]) if len(levels) else "empty")
    if not as_category and not isinstance(column.dtype, pd.CategoricalDtype):  # a category of pandas is the user's word
        numbers = drop_unknown(known)
        if is_plain_number(numbers).all() and not are_codes(numbers).any():  # numbers stored as text
            whole = bool(numbers.str.fullmatch(r"[+-]?\d+").all())
            return _guess_number(pd.Series(to_numbers(column), name=column.name), whole=whole)
        if set(known.str.lower()) <= {"true", "false"}:
            truths = known.str.lower() == "true"
            return Boolean(name=name, fill=float(truths.mean() >= 0.5), flag=bool(cells.isna().any()))
        # Dates after booleans and numbers: 2024 is a number, not a year.
        layout = find_date_format(known)
        if layout is not None:
            return _guess_date(column, layout)
        # Prices with a currency, percentages, marks of thousands.
        unit = find_unit(numbers)
        if are_numbers(numbers, unit).all() and not are_codes(numbers).any():
            rule = _guess_number(pd.Series(to_numbers(column, unit), name=column.name))
            return replace(rule, unit=unit) if isinstance(rule, Number) else rule
        # Many levels, or mostly numbers: a column of numbers with a typo must not pass for text.
        if len(levels) > min(MAX_LEVELS, len(known) / 2) or are_mostly_numbers(known):
            category, drop = (option.format(name) for option in advice[:2])
            instead = f"; or give {category} to take each value as a category, {drop} to leave the column out"
            reject_malformed_numbers(known, instead)
        # Names and free text: (nearly) every row has its own value, so it says nothing about others.
        if len(levels) == len(known) or len(levels) > max(MAX_LEVELS, len(known) / 2):
            return Dropped(name=name, reason=f"text with {len(levels)} values in {len(known)} rows")
    # Sorted: the order of X must not depend on that of the rows.
    kept, rare = tuple(sorted(levels.index[:MAX_LEVELS])), tuple(sorted(levels.index[MAX_LEVELS:]))
    listed = rare if len(rare) <= MAX_RARE and all(len(level) <= MAX_RARE_LENGTH for level in rare) else ()
    return Category(name=name, levels=kept, other=bool(rare), flag=bool(cells.isna().any()), rare=listed)


def is_row_number(column: pd.Series) -> bool:
    """Return whether integers number the rows: they go up by one, or many are all different and show another sign.

    Signs are that they grow from row to row, that they are consecutive in another order, as in a file that was
    shuffled, and that the column is called an identifier.
    Ask about all rows of a file: in a part of them, a row number looks like a feature.
    """
    if not pd.api.types.is_integer_dtype(column) or len(column) < 3 or column.isna().any():
        return False
    values = to_numbers(column)
    if (np.diff(values) == 1).all():
        return True
    if len(values) < MIN_SHUFFLED or len(np.unique(values)) < len(values):
        return False
    grows, consecutive = (np.diff(values) > 0).all(), np.ptp(values) == len(values) - 1
    name = str(column.name)
    return bool(grows or consecutive or IDENTIFIER.fullmatch(name) or IDENTIFIER.fullmatch(name.lower()))


def pixel_columns(features: pd.DataFrame) -> list[Column]:
    """Return the rules of pixels: all are divided by the brightest one, and none is left out."""
    values = np.column_stack([to_numbers(features[name]) for name in features])
    if np.isnan(values).any():
        raise InvalidInputError("Images must not have missing pixels.")
    # One scale for all pixels: scaled one by one, dark corners would count as much as the centre.
    scale = float(np.abs(values).max()) or 1.0
    return [Number(name=str(name), center=0.0, scale=scale, fill=0.0) for name in features]


def _guess_number(column: pd.Series, *, whole: bool = False) -> Column:
    """`whole`: texts that are whole numbers, which may be too long for any integer of NumPy."""
    name, values = str(column.name), to_numbers(column)
    known = values[~np.isnan(values)]
    if not len(known):
        return Dropped(name=name, reason="empty")
    if (whole or pd.api.types.is_integer_dtype(column)) and np.abs(known).max() > LARGEST_EXACT:  # float64 merges some
        return Dropped(name=name, reason="whole numbers too long to be exact, such as identifiers")
    if known.min() == known.max():
        return Dropped(name=name, reason=_constant(f"{known[0]:g}"))
    return Number(name=name, **_measure(values))


def _guess_date(column: pd.Series, layout: str) -> Column:
    name, values = str(column.name), parse_days(column, layout)
    known = values[~np.isnan(values)]
    if not len(known):
        return Dropped(name=name, reason="empty")
    if known.min() == known.max():
        return Dropped(name=name, reason=_constant(str(column.dropna().iloc[0])))
    # A cycle is informative if the dates span it twice and do not all lie at the same phase.
    cycles = tuple(cycle for cycle in CYCLES if np.ptp(known) >= 2 * cycle and np.ptp(known % cycle) > 0)
    return Date(name=name, layout=layout, cycles=cycles, last=float(known.max()), **_measure(values))


def _measure(values: Array) -> dict[str, Any]:
    """Return center, scale, fill and flag of numbers."""
    known = values[~np.isnan(values)]
    size = float(np.abs(known).max())  # the squares of huge numbers would overflow
    scale = float((known / size).std() * size)
    return {
        "center": float((known / size).mean() * size),
        # Equal up to rounding: leave the differences as small as they are.
        "scale": scale if scale > 1e-12 * size else size,
        "fill": float(np.median(known)),
        "flag": bool(np.isnan(values).any()),
    }


def _constant(value: str) -> str:
    return f"constant ({value if len(value) <= 20 else value[:19] + '…'})"

"""Which rule a column gets, told from its cells."""

from __future__ import annotations

import numpy as np
import pandas as pd

from distreduce._utils.typing import Array
from distreduce.datasets.columns import LARGEST_EXACT
from distreduce.exceptions import InvalidInputError
from distreduce.tables.rules import Boolean, Category, Date, Dropped, Number, Rule
from distreduce.tables.values import date_layout, days, is_number, mostly_numbers, numbers, refuse_spoilt_numbers, texts

MOST_LEVELS = 30
LEAST_SHUFFLED = 20  # rows: of fewer, a feature may hold consecutive numbers by chance
CYCLES = (365.2425, 7.0, 1.0)  # days of a year, a week, a day


def guess_rule(column: pd.Series, *, as_category: bool = False) -> Rule:
    """The rule of one column; infinite numbers count as missing.

    Left out are empty columns, constant ones, whole numbers that float64 would round, and texts of which every one is
    different (or more than half of them, where they are more than 30).
    """
    name = str(column.name)
    if not as_category and is_number(column):
        return _number(column)
    if not as_category and pd.api.types.is_datetime64_any_dtype(column):
        return _date(column, "ISO8601")
    cells = texts(column)
    known = cells[cells.notna()]
    levels = known.value_counts()  # most frequent first; ties in the order of the rows
    if len(levels) < 2:
        return Dropped(name, _constant(levels.index[0]) if len(levels) else "empty")
    if not as_category and not isinstance(column.dtype, pd.CategoricalDtype):
        if pd.to_numeric(known, errors="coerce").notna().all():  # numbers that came as texts
            return _number(pd.Series(numbers(column), name=column.name))
        if set(known.str.lower()) <= {"true", "false"}:
            truths = known.str.lower() == "true"
            return Boolean(name, float(truths.mean() >= 0.5), bool(cells.isna().any()))
        layout = date_layout(known)
        if layout is not None:
            return _date(column, layout)
        if len(levels) > min(MOST_LEVELS, len(known) / 2) or mostly_numbers(known):
            category, drop = f"--category {name!r} to take each value as a category", f"--drop {name!r}"
            refuse_spoilt_numbers(known, f"; or give {category}, {drop} to leave the column out")
        if len(levels) == len(known) or len(levels) > max(MOST_LEVELS, len(known) / 2):
            return Dropped(name, f"text with {len(levels)} values in {len(known)} rows")
    kept = tuple(sorted(levels.index[:MOST_LEVELS]))
    return Category(name, kept, len(levels) > MOST_LEVELS, bool(cells.isna().any()))


def counts_rows(column: pd.Series) -> bool:
    """Whether whole numbers go up by one, or are consecutive numbers in another order, as in a file that was shuffled.

    To be asked about all rows of a file: of a part of them, no number of a row can be told from a feature.
    """
    if not pd.api.types.is_integer_dtype(column) or len(column) < 3 or column.isna().any():
        return False
    values = numbers(column)
    if (np.diff(values) == 1).all():
        return True
    consecutive = len(values) >= LEAST_SHUFFLED and np.ptp(values) == len(values) - 1
    return bool(consecutive and len(np.unique(values)) == len(values))


def pixel_rules(features: pd.DataFrame) -> list[Rule]:
    """Images: every pixel in units of the brightest of all, none left out."""
    values = np.column_stack([numbers(features[name]) for name in features])
    if np.isnan(values).any():
        raise InvalidInputError("Images must not have missing pixels.")
    scale = float(np.abs(values).max()) or 1.0
    return [Number(str(name), 0.0, scale, 0.0) for name in features]


def _number(column: pd.Series) -> Rule:
    name, values = str(column.name), numbers(column)
    known = values[~np.isnan(values)]
    if not len(known):
        return Dropped(name, "empty")
    if known.min() == known.max():
        return Dropped(name, _constant(f"{known[0]:g}"))
    if pd.api.types.is_integer_dtype(column) and np.abs(known).max() > LARGEST_EXACT:
        return Dropped(name, "whole numbers too long to be exact, such as identifiers")
    return _scaled(name, values)


def _scaled(name: str, values: Array) -> Number:
    known = values[~np.isnan(values)]
    size = float(np.abs(known).max())  # the squares of huge numbers would leave the range
    center = float((known / size).mean() * size)
    scale = float((known / size).std() * size)
    # Equal up to rounding: leave the differences as small as they are.
    scale = scale if scale > 1e-12 * size else size
    return Number(name, center, scale, float(np.median(known)), bool(np.isnan(values).any()))


def _date(column: pd.Series, layout: str) -> Rule:
    name, values = str(column.name), days(column, layout)
    known = values[~np.isnan(values)]
    if not len(known):
        return Dropped(name, "empty")
    if known.min() == known.max():
        return Dropped(name, _constant(str(column.dropna().iloc[0])))
    number = _scaled(name, values)
    span = float(np.ptp(known))
    # A cycle says something if the dates see it twice and do not all lie at the same point of it.
    cycles = tuple(cycle for cycle in CYCLES if span >= 2 * cycle and np.ptp(known % cycle) > 0)
    return Date(name, layout, number.center, number.scale, number.fill, cycles, number.flag)


def _constant(value: str) -> str:
    return f"constant ({value if len(value) <= 20 else value[:19] + '…'})"

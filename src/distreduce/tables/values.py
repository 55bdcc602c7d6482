"""Cells as numbers, texts and days: what every rule reads a column with; missing ones are NaN or None."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError

EPOCH = pd.Timestamp(0, tz="UTC")
NEARLY_ALL = 0.9  # share of numbers above which the other cells are mistakes
# A column is of the first of these that reads all its cells.
DATE_FORMATS = {
    "ISO8601": "year-month-day",
    "%d.%m.%Y": "day.month.year",
    "%d.%m.%Y %H:%M": "day.month.year hour:minute",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%Y %H:%M": "month/day/year hour:minute",
    "%d/%m/%Y %H:%M": "day/month/year hour:minute",
}


def is_number(column: pd.Series) -> bool:
    """Whether the column came as real numbers; booleans are none."""
    types = pd.api.types
    return types.is_numeric_dtype(column) and not types.is_bool_dtype(column) and not types.is_complex_dtype(column)


def texts(column: pd.Series) -> pd.Series:
    """Cells as text without outer spaces, None where there is none; whole numbers without a fraction."""
    out = pd.Series(None, index=column.index, dtype=object, name=column.name)
    known = column.notna()
    cells = column[known]
    if is_number(column) and all(float(cell).is_integer() for cell in cells):
        cells = cells.map(int)  # a column of codes with a gap comes as 7.0
    cells = cells.astype(str).str.strip().astype(object)
    out[known] = cells.where(cells != "", None)
    return out


def numbers(column: pd.Series) -> Array:
    """Cells as float64; infinite ones count as missing."""
    values = column if is_number(column) else _parsed(column)
    out = values.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    out[np.isinf(out)] = np.nan
    return out


def _parsed(column: pd.Series) -> pd.Series:
    cells = texts(column)
    values = pd.to_numeric(cells, errors="coerce")
    strange = cells.notna() & values.isna()
    if strange.any():
        raise InvalidInputError(
            f"Column {column.name!r} should hold numbers but has {cells[strange].iloc[0]!r} "
            f"(in {_rows(int(strange.sum()))}); correct it, or leave the cell empty."
        )
    return values.astype(np.float64)


def truths(column: pd.Series) -> Array:
    """Cells as 0 and 1: booleans, the words true and false, and the numbers 0 and 1."""
    cells = texts(column).astype(object).map(lambda cell: cell.lower() if isinstance(cell, str) else None)
    values = cells.map({"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}).astype(np.float64)
    strange = cells.notna() & values.isna()
    if strange.any():
        raise InvalidInputError(f"Column {column.name!r} should be true or false but has {column[strange].iloc[0]!r}.")
    return np.asarray(values, dtype=np.float64)


def days(column: pd.Series, layout: str) -> Array:
    """Cells as days since 1970, NaN where there is no date or one that is written in another way than `layout`."""
    if pd.api.types.is_datetime64_any_dtype(column):
        moments = column.dt.tz_localize("UTC") if column.dt.tz is None else column.dt.tz_convert("UTC")
    else:
        moments = pd.to_datetime(texts(column), format=layout, errors="coerce", utc=True)
    unit = moments.dt.unit  # dates of a Parquet file may lie beyond the year 2262, where nanoseconds end
    return np.asarray((moments - EPOCH.as_unit(unit)) / pd.Timedelta(days=1).as_unit(unit), dtype=np.float64)


def read_days(column: pd.Series, layout: str) -> Array:
    """:func:`days`, with an error for cells that are no dates."""
    values = days(column, layout)
    strange = column.notna().to_numpy() & np.isnan(values)
    if strange.any():
        raise InvalidInputError(
            f"Column {column.name!r} should hold dates ({DATE_FORMATS.get(layout, layout)}) but has "
            f"{str(column[strange].iloc[0])!r} (in {_rows(int(strange.sum()))}); correct it, or leave the cell empty."
        )
    return values


def date_layout(cells: pd.Series) -> str | None:
    """The first of `DATE_FORMATS` that reads every text, or None."""
    few = cells.iloc[:50]
    for layout in DATE_FORMATS:
        if not np.isnan(days(few, layout)).any() and not np.isnan(days(cells, layout)).any():
            return layout
    return None


def mostly_numbers(cells: pd.Series) -> bool:
    """Whether `NEARLY_ALL` texts are plain numbers, and none of them a code such as 01."""
    plain = pd.to_numeric(cells, errors="coerce").notna()
    return bool(plain.mean() >= NEARLY_ALL and not cells.str.fullmatch(r"0\d+").any())


def words_among_numbers(column: pd.Series) -> tuple[str, ...]:
    """Cells such as "unknown" and "n/a" of a column whose distinct texts are numbers but for a tenth at most.

    None if one of the others has a digit, such as ``12 kg`` or ``7A``: that is a mistake or a code, and no gap.
    """
    if is_number(column) or isinstance(column.dtype, pd.CategoricalDtype):
        return ()
    distinct = texts(column).dropna().drop_duplicates()
    strange = distinct[pd.to_numeric(distinct, errors="coerce").isna()]
    if not len(strange) or not mostly_numbers(distinct) or strange.str.contains(r"\d").any():
        return ()
    return tuple(sorted(strange))


def refuse_spoilt_numbers(cells: pd.Series, instead: str = "") -> None:
    """Texts of which nearly all are numbers are numbers with a mistake, or written in a way that is not understood.

    `instead` says what else can be done with the column.
    """
    plain = pd.to_numeric(cells, errors="coerce").notna()
    almost = cells.map(lambda cell: bool(re.fullmatch(r"[^\w.,+-]*[+-]?[\d.,' ]*\d[\d.,' ]*\s*[^\w\s]?", cell)))
    if (plain | almost).mean() < NEARLY_ALL:
        return
    strange = cells[~plain]
    raise InvalidInputError(
        f"Column {cells.name!r} looks like numbers but has {strange.iloc[0]!r} (in {_rows(len(strange))}). Write "
        f"numbers as 1234.5 and leave unknown cells empty{instead}."
    )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"

"""Convert the cells of a column to text, numbers, booleans or days; missing cells become None or NaN.

Numbers may carry a unit, such as "€ 1,250", "15.5 °C" or "80 m2".
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from distreduce._utils.text import count_of
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidCellError

EPOCH = pd.Timestamp(0, tz="UTC")
LARGEST_EXACT = 2**53  # float64 rounds integers beyond it
MANY_DIFFERENT = 30  # values; with fewer, numbers and a frequent word may be names of classes
NEARLY_ALL = 0.9  # share of numbers above which the other cells are taken as mistakes
# The format of a column is the first of these that reads all its cells.
DATE_FORMATS = {
    "ISO8601": "year-month-day",
    "%d.%m.%Y": "day.month.year",
    "%d.%m.%Y %H:%M": "day.month.year hour:minute",
    "%d.%m.%Y %H:%M:%S": "day.month.year hour:minute:second",
    "%d.%m.%y": "day.month.year, two digits (1969 to 2068)",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%Y %H:%M": "month/day/year hour:minute",
    "%d/%m/%Y %H:%M": "day/month/year hour:minute",
    "%m/%d/%y": "month/day/year, two digits (1969 to 2068)",
    "%d/%m/%y": "day/month/year, two digits (1969 to 2068)",
    "%m/%d/%Y %I:%M %p": "month/day/year hour:minute AM/PM",
    "%d/%m/%Y %I:%M %p": "day/month/year hour:minute AM/PM",
    "%d-%b-%Y": "day-month-year",
    "%d %b %Y": "day month year",
    "%b %d, %Y": "month day, year",
}
# Texts that stand for a gap in any table: those that pandas takes as such in text files, and some more.
GAPS = frozenset(
    ("?", "-", ".", "", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NULL", "null", "None", "NaN", "nan")
    + ("-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "n.a.", "N.A.", "k.A.", "#NV", "--", "–", "—")
)

# Words that stand for a gap among numbers; among texts they are a level like any other.
UNKNOWN = frozenset(
    ("unknown", "not known", "missing", "not available", "no data", "unbekannt", "fehlt", "keine angabe", "inconnu")
    + ("inconnue", "desconocido", "desconocida", "desconhecido", "sconosciuto", "onbekend", "okänd", "ukendt", "ukjent")
)


def is_number(column: pd.Series) -> bool:
    """Return whether the dtype is real numbers; booleans do not count."""
    types = pd.api.types
    return types.is_numeric_dtype(column) and not types.is_bool_dtype(column) and not types.is_complex_dtype(column)


def find_unknown(cells: pd.Series) -> pd.Series:
    """Return which texts are words of `UNKNOWN`."""
    return cells.isin({cell for cell in cells.dropna().unique() if cell.lower() in UNKNOWN})


def drop_unknown(cells: pd.Series) -> pd.Series:
    """Return texts without words of `UNKNOWN` if these are few, or at most half where the others differ much."""
    words = find_unknown(cells)
    few = words.mean() <= (0.5 if cells.nunique() > MANY_DIFFERENT else 1 - NEARLY_ALL)
    return cells[~words] if few else cells


def is_plain_number(cells: pd.Series) -> pd.Series:
    """Return which texts are numbers as Python writes them."""
    return pd.to_numeric(cells, errors="coerce").notna()


def are_codes(cells: pd.Series) -> pd.Series:
    """Return which texts are digits after a zero, such as 01 or a postcode: as numbers they would lose the zero."""
    return cells.str.fullmatch(r"0\d+") == True  # noqa: E712  missing cells are not


def to_levels(column: pd.Series) -> pd.Series:
    """Return cells as :func:`to_text` does, but each number in one way: 7, 7.0 and 7e0 are one level, 07 is another."""
    cells = to_text(column)
    return cells.map({cell: write_number(cell) for cell in cells.dropna().unique()}).astype(object)


def write_number(text: str) -> str:
    """Return a number in its shortest form; other text, codes and long numbers are returned as they are."""
    # Up to 15 digits, which float64 holds exactly.
    if not re.fullmatch(r"[+-]?(?=[\d.]{1,16}(e|$))(0|[1-9]\d*)?(\.\d*)?(e[+-]?\d{1,2})?", text, re.IGNORECASE):
        return text
    try:
        value = float(text)
    except ValueError:  # such as a point alone
        return text
    return str(int(value)) if value.is_integer() and abs(value) < LARGEST_EXACT else repr(value)


def to_text(column: pd.Series) -> pd.Series:
    """Return stripped text, None where missing; whole numbers have no fraction, whatever the other rows hold."""
    out = pd.Series(None, index=column.index, dtype=object, name=column.name)
    known = column.notna()
    cells = column[known]
    if is_number(column):  # a column of codes with a gap comes as 7.0
        written = [str(int(cell) if float(cell).is_integer() else cell) for cell in cells.to_numpy()]
        cells = pd.Series(written, index=cells.index, dtype=object)
    # Strip, and count blank cells as missing: spreadsheets leave both behind.
    cells = cells.astype(str).str.strip().astype(object)
    out[known] = cells.where(cells != "", None)
    return out


def empty_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a data frame in which the texts of `GAPS` are missing, as they are in one that comes from a text file."""
    types, emptied = pd.api.types, {}
    for name, column in frame.items():
        # A category of pandas is the user's word: its levels are what they are called.
        if types.is_string_dtype(column.dtype) and not isinstance(column.dtype, pd.CategoricalDtype):
            gaps = np.array([isinstance(cell, str) and cell.strip() in GAPS for cell in column], dtype=bool)
            if gaps.any():
                emptied[str(name)] = column.mask(gaps, None)
    return frame.assign(**emptied)


def find_unit(cells: pd.Series) -> str:
    """Return the most frequent unit of texts that are numbers with a unit; "" if there are none."""
    units = cells.map({cell: strip_unit(cell)[1] for cell in cells.unique()})
    return str(units[units != ""].value_counts().index[0]) if (units != "").any() else ""


def are_numbers(cells: pd.Series, unit: str) -> pd.Series:
    """Return which texts are numbers, with or without this unit and marks of thousands."""
    known = {cell for cell in cells.unique() if strip_unit(cell)[1] in ("", unit) and _is_float(strip_unit(cell)[0])}
    return cells.isin(known)


def _is_float(text: str) -> bool:
    try:
        return "_" not in text and not np.isnan(float(text))  # Python reads 1_000, pandas does not
    except ValueError:
        return False


def to_numbers(column: pd.Series, unit: str = "") -> Array:
    """Return cells, with or without `unit`, as float64; infinite ones and words of `UNKNOWN` are missing.

    Other text raises an error.
    """
    values = column
    if not is_number(column):
        cells = to_text(column)
        plain = {cell: strip_unit(cell)[0] for cell in cells.dropna().unique() if strip_unit(cell)[1] in ("", unit)}
        values = pd.to_numeric(cells.map(plain), errors="coerce").astype(np.float64)
        expected = f"should hold numbers in {unit}" if unit else "should hold numbers"
        _reject_cells(cells, cells.notna() & values.isna() & ~find_unknown(cells), expected)
    # A copy, because the next line writes and `values` may be the user's own column.
    out = values.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    out[np.isinf(out)] = np.nan
    return out


def to_booleans(column: pd.Series) -> Array:
    """Return booleans, the words true and false, and the numbers 0 and 1 as 0 and 1; others raise InvalidInputError."""
    cells = to_text(column).map(lambda cell: cell.lower() if isinstance(cell, str) else None)
    values = cells.map({"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}).astype(np.float64)
    _reject_cells(column, cells.notna() & values.isna(), "should be true or false")
    return np.asarray(values, dtype=np.float64)


def parse_days(column: pd.Series, layout: str) -> Array:
    """Return cells as days since 1970; NaN where missing or not written as `layout`, a key of `DATE_FORMATS`."""
    if pd.api.types.is_datetime64_any_dtype(column):
        moments = column.dt.tz_localize("UTC") if column.dt.tz is None else column.dt.tz_convert("UTC")
    else:
        moments = pd.to_datetime(to_text(column), format=layout, errors="coerce", utc=True)
    unit = moments.dt.unit  # dates of a Parquet file may lie beyond the year 2262, where nanoseconds end
    return np.asarray((moments - EPOCH.as_unit(unit)) / pd.Timedelta(days=1).as_unit(unit), dtype=np.float64)


def to_days(column: pd.Series, layout: str) -> Array:
    """Call :func:`parse_days`, but raise InvalidInputError for cells that are not dates."""
    values = parse_days(column, layout)
    wrong = column.notna() & np.isnan(values)
    _reject_cells(column, wrong, f"should hold dates ({DATE_FORMATS.get(layout, layout)})")
    return values


def _reject_cells(column: pd.Series, wrong: pd.Series, expected: str) -> None:
    if wrong.any():
        cells = column[wrong]
        raise InvalidCellError(
            f"Column {column.name!r} {expected} but has {str(cells.iloc[0])!r} (in {count_of(len(cells), 'row')}); "
            "correct it, or leave the cell empty.",
            int(cells.index[0]),
        )


def find_date_format(cells: pd.Series) -> str | None:
    """Return the first of `DATE_FORMATS` that reads every text, or None."""
    # Try the first cells before all: most columns of text fail there, and parsing is slow.
    few = cells.iloc[:50]
    for layout in DATE_FORMATS:
        if not np.isnan(parse_days(few, layout)).any() and not np.isnan(parse_days(cells, layout)).any():
            return layout
    return None


def are_mostly_numbers(cells: pd.Series) -> bool:
    """Return whether a share of `NEARLY_ALL` of the texts are numbers of one unit, and none is a code such as 01."""
    return bool(are_numbers(cells, find_unit(cells)).mean() >= NEARLY_ALL and not are_codes(cells).any())


def reject_malformed_numbers(cells: pd.Series, instead: str = "") -> None:
    """Raise InvalidInputError for text that is nearly all numbers: it holds a typo, another unit or another notation.

    `instead` says what else can be done with the column.
    """
    unit = find_unit(cells)
    proper = are_numbers(cells, unit)
    # Digits with signs of other notations around them, which cannot be read or not in one column: 1,5 or 1.2.3 or #5.
    almost = cells.map(lambda cell: bool(re.fullmatch(r"[^\w.,+-]*[+-]?[\d.,' ]*\d[\d.,' ]*\s*[^\w\s]?", cell)))
    if proper.all() or (proper | almost).mean() < NEARLY_ALL:  # proper numbers, or proper text
        return
    strange = cells[~proper]
    numbers = f"numbers in {unit}" if unit else "numbers"
    raise InvalidCellError(
        f"Column {cells.name!r} looks like {numbers} but has {strange.iloc[0]!r} (in {count_of(len(strange), 'row')}). "
        f"Write numbers as 1234.5{f' or 1234.5 {unit}' * bool(unit)} and leave unknown cells empty{instead}.",
        int(strange.index[0]),
    )


CURRENCY = "[$€£¥₹]|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|CAD|AUD"
# What may stand behind the number. Digits and second words only in units that are known, and letters without a blank,
# too: "12A" and "12 B2" are codes, "12 Main Street" is an address.
UNITS = (
    rf"\s*(?:{CURRENCY}|[%‰℃℉]|[°º](?:\s?[CFK])?)",
    r"\s+[^\W\d_][^\s\d]{0,9}",  # any single word
    r"\s*(?:[^\W\d_]{1,6}/)?(?:[kcdmµn]?m|ft|in|yd|mi)\^?[23](?:/[^\W\d_]{1,5})?|\s*m/s\^?[2²]",  # m2, kg/m3, m3/h
    r"\s+(?:sq|cu|square|cubic|fl)\.?\s+[^\W\d_]{1,7}\.?",  # sq m, fl oz
    r"\s+(?:[kmµ]?g|t|lbs?|tons?|tonnes?)(?:/[^\W\d_]{1,4})?\s+CO[2₂](?:-?eq?)?(?:/[^\W\d_]{1,4})?",  # g CO2
    r"(?:[kmµ]g|lbs?|oz|[kcmµn]m|[mcd]l|ft|[kMG]?Hz|[kMGT]W|[kMG]?Wh|[kMGT]B|[hkM]Pa|m²|m³|km/h|mph|ms|dB|ppm|rpm|bpm)",
)
MEASURE = re.compile(
    rf"(?:(?P<sign>[+-]?)(?P<before>{CURRENCY})\s*)?(?P<number>[+-]?[\d,'.]*\d)(?P<after>{'|'.join(UNITS)})?"
)
THOUSANDS = re.compile(r"[+-]?\d{1,3}([,'])\d{3}(\1\d{3})*(\.\d+)?")
CONTINENTAL = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d*,\d+)")  # 1.250 or 1.250,5 or 0,5


def strip_unit(text: str) -> tuple[str, str]:
    """Return the number in a text such as "€ 1,250" or "12%" without marks of thousands, and its unit ("" if none).

    The text itself is returned if it is not a number with a unit: "12 kg 5", "1,5" or "A7".
    """
    found = MEASURE.fullmatch(text)
    if found is None:
        return text, ""
    number = found["number"]
    if "," in number or "'" in number:
        if not THOUSANDS.fullmatch(number):
            return text, ""
        number = re.sub("[,']", "", number)
    unit = " ".join(((found["before"] or "") + (found["after"] or "")).split())
    return (found["sign"] or "") + number, re.sub("([°º]) ", r"\1", unit)  # "° C" is "°C"


def use_point(text: str) -> str:
    """Return a number of a file with decimal commas, with or without a unit, with a point: "1.250,5 €" is "1250.5 €".

    Other texts are returned as they are.
    """
    found = MEASURE.fullmatch(text)
    if found is None or not CONTINENTAL.fullmatch(found["number"]):
        return text
    start, stop = found.span("number")
    return text[:start] + found["number"].replace(".", "").replace(",", ".") + text[stop:]

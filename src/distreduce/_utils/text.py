"""Words for messages: the name that was probably meant, plurals, lists of values, and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def decimal_text(value: float, digits: int) -> str:
    """Return a number with this many decimals and a true minus sign; what rounds to zero has none."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return "Did you mean 'x'? " for the known name closest to `name`, or "" if none is close.

    Case is ignored: a column ``Price`` is close to ``PRICE``.

    Examples
    --------
    >>> did_you_mean("prise", ["area", "Price"])
    "Did you mean 'Price'? "
    >>> did_you_mean("colour", ["area", "Price"])
    ''
    """
    by_lower = {str(each).lower(): str(each) for each in known}
    close = get_close_matches(str(name).lower(), by_lower, n=1)
    return f"Did you mean {by_lower[close[0]]!r}? " if close else ""


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    Examples
    --------
    >>> count_of(1, "iteration"), count_of(2000, "row")
    ('1 iteration', '2,000 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def strip_control(text: str) -> str:
    """Replace characters of a file that could control the terminal by blanks.

    Examples
    --------
    >>> strip_control("red \\x1b[31m")
    'red  [31m'
    """
    return "".join(sign if sign.isprintable() else " " for sign in text)


def list_words(values: Sequence[object], most: int = 5) -> str:
    """Quote and join values; "…" stands for all after the first `most`.

    Examples
    --------
    >>> list_words(["a", "b"])
    "'a', 'b'"
    >>> list_words(range(7), most=2)
    '0, 1, …'
    """
    return ", ".join(map(repr, values[:most])) + (", …" if len(values) > most else "")


def number_text(value: float, digits: int = 4) -> str:
    """Return a number with a few digits, or rounded to a whole one from 1,000 to a billion, and a true minus sign.

    Examples
    --------
    >>> number_text(0.123456), number_text(-668750.3), number_text(3.0), number_text(1.5e10)
    ('0.1235', '−668,750', '3', '1.5e+10')
    """
    if math.isnan(value):
        return "–"
    # round() raises for infinity.
    whole = math.isfinite(value) and (value == round(value) or abs(value) >= 1000)
    text = f"{value:,.0f}" if whole and abs(value) < 1e9 else f"{value:.{digits}g}"
    return text.replace("-", "−")

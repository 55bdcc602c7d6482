"""Words for messages: the name that was probably meant, plurals, and lists of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


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

"""The name that somebody most likely meant, for the errors about names that are not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A question with a space after it, to put before the names that there are; nothing if none of them is close.

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

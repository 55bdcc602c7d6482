"""What people read: words for messages, warnings that point at the user's line, progress bars."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def decimal_text(value: float, digits: int) -> str:
    """Return a number with this many decimals and a true minus sign; what rounds to zero has none."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return "Did you mean 'x'? " for the known name closest to `name` in any case, or "" if none is close."""
    by_lower = {str(each).lower(): str(each) for each in known}
    close = get_close_matches(str(name).lower(), by_lower, n=1)
    return f"Did you mean {by_lower[close[0]]!r}? " if close else ""


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def strip_control(text: str) -> str:
    """Replace characters of a file that could control the terminal by blanks."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def list_words(values: Sequence[object], most: int = 5) -> str:
    """Quote and join values; "…" stands for all after the first `most`."""
    return ", ".join(map(repr, values[:most])) + (", …" if len(values) > most else "")


def number_text(value: float, digits: int = 4) -> str:
    """Return a number with a few digits, or rounded to a whole one from 1,000 to a billion, and a true minus sign.

    Examples
    --------
    >>> number_text(0.123456), number_text(-668750.3), number_text(3.0), number_text(1.5e10), number_text(99.96, 3)
    ('0.1235', '−668,750', '3', '1.5e+10', '100')
    >>> number_text(123.4, 2), number_text(99.6, 2)  # not 1.2e+02, 1e+02
    ('123', '100')
    """
    if math.isnan(value):
        return "–"
    large = abs(float(f"{value:.{digits}g}")) >= 10 ** min(digits, 3)  # as written: 99.6 is 100 of two digits
    whole = math.isfinite(value) and (large or value == round(value))  # round() raises for infinity
    text = f"{value:,.0f}" if whole and abs(value) < 1e9 else f"{value:.{digits}g}"
    return text.replace("-", "−")


PACKAGES = ("distreduce", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line of code outside this package and scikit-learn: the one that the user wrote."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=_folders())
        return
    # Level 2 is the caller of this function, frame 1 from here.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_folders()):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@cache
def _folders() -> tuple[str, ...]:
    """The folders of the packages whose frames are skipped, each with a separator at its end."""
    specs = [find_spec(name) for name in PACKAGES]
    return tuple(os.path.dirname(spec.origin) + os.sep for spec in specs if spec is not None and spec.origin)


@contextmanager
def progress_bar(
    *columns: str | ProgressColumn, visible: bool = True, transient: bool = True, **options: Any
) -> Iterator[Progress]:
    """Show a rich progress bar on standard error while the block runs; if `transient`, remove it afterwards.

    Nothing is shown unless `visible` is true and standard error is a terminal. `options` go to
    :class:`rich.progress.Progress`.
    """
    from rich.console import Console
    from rich.progress import Progress

    screen = Console(stderr=True)
    disabled = not (visible and screen.is_terminal)
    bar = Progress(*columns, console=screen, disable=disabled, transient=transient, **options)
    with nullcontext() if disabled else bar:  # up to version 14, rich ends a disabled bar with an empty line
        yield bar

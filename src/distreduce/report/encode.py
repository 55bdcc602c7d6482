"""Numbers and text as the page holds them: arrays in base64, JSON safe inside a script element, readable cells."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from distreduce._utils.text import number_text
from distreduce._utils.typing import Array

MISSING = 65535  # the sixteen-bit code of a missing value
LONGEST_TEXT = 200
# Characters that could end a script element or a line of JavaScript; in JSON strings they can be written as numbers.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def as_json(document: Any) -> Markup:
    """Return JSON for a script element, which no string in it can end; equal documents give equal text."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))  # noqa: S704  # escaped above


def quantise(values: Array, low: float, high: float) -> NDArray[np.uint16]:
    """Return numbers as steps 0 … 65534 from low to high, `MISSING` where they are NaN or infinite."""
    known = np.isfinite(values)
    half = (high / 2 - low / 2) or 1.0  # halves: the difference of two large numbers may overflow
    share = (np.where(known, values, low) / 2 - low / 2) / half
    return np.where(known, np.round(np.clip(share, 0, 1) * (MISSING - 1)), MISSING).astype(np.uint16)


def cell_text(value: Any) -> str:
    """Return one value of a table as people read it."""
    if value is None or value is pd.NaT or value is pd.NA:
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return number_text(float(value))
    # A date without a time is shown as a date.
    if isinstance(value, dt.datetime) and not (value.hour or value.minute or value.second or value.microsecond):
        return value.date().isoformat()
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"

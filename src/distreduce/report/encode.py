"""Numbers and text as the page carries them: typed arrays in base64, JSON that no text in it can end, plain words."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from distreduce._utils.typing import Array

MISSING = 65535  # the one code of sixteen bits that stands for no value
LONGEST_TEXT = 200
# What could end a script element or a line in JavaScript; inside JSON's strings each can be written as its number.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def as_json(document: Any) -> Markup:
    """JSON to stand inside a script element: equal documents give equal text, and no string in it can end it."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))  # noqa: S704  # escaped above


def packed(values: ArrayLike, kind: str) -> dict[str, str]:
    """A typed array, flat and little-endian: "u1", "u2", "u4" or "f4" with its base64."""
    raw = np.ascontiguousarray(np.asarray(values), dtype=f"<{kind}")
    return {"type": kind, "data": base64.b64encode(raw.tobytes()).decode("ascii")}


def in_steps(values: Array, low: float, high: float) -> NDArray[np.uint16]:
    """Numbers as steps 0 … 65534 from low to high, `MISSING` where they are not finite."""
    known = np.isfinite(values)
    half = (high / 2 - low / 2) or 1.0  # halves: the difference of two large numbers may overflow
    share = (np.where(known, values, low) / 2 - low / 2) / half
    return np.where(known, np.round(np.clip(share, 0, 1) * (MISSING - 1)), MISSING).astype(np.uint16)


def cell_text(value: Any) -> str:
    """One value of a table as people read it."""
    if value is None or value is pd.NaT or value is pd.NA:
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return number_text(float(value))
    if isinstance(value, dt.datetime) and not (value.hour or value.minute or value.second or value.microsecond):
        return value.date().isoformat()
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def number_text(value: float, digits: int = 4) -> str:
    """A number with a few digits, whole ones in full, and a true minus sign."""
    if math.isnan(value):
        return "–"
    whole = value == round(value) if math.isfinite(value) else False
    text = f"{value:,.0f}" if whole and abs(value) < 1e9 else f"{value:.{digits}g}"
    return text.replace("-", "−")

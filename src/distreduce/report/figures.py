"""What the page shows of predictions: a table of scores, drawings, and a confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

MAX_CURVES = 7  # colours of a curve in the style


class Figure(NamedTuple):
    """A drawing, what it is and how to read it, and the names of its curves with their styles."""

    title: str
    drawing: Markup
    caption: str
    key: list[tuple[str, str]]


@dataclass(frozen=True)
class Predictions:
    """A table of scores (rows of texts under headings), drawings, and a confusion matrix (counts, by true class)."""

    headings: list[str]
    scores: list[list[str]]
    figures: list[Figure]
    classes: list[str]
    confusion: list[list[int]]
    note: str = ""


def score_text(value: float) -> str:
    """A score with three decimals, as the terminal shows it."""
    return f"{value:.3f}".replace("-", "−") if np.isfinite(value) else "–"

"""What a report is made of. Experiments return these; the report writes them as Markdown and as HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

Verdict = Literal["better", "equal", "worse"]


@dataclass(frozen=True)
class Text:
    """A paragraph, in which *this* is emphasised, **this** is strong and `this` is code; the rest is as it stands."""

    text: str


@dataclass(frozen=True)
class Comparison:
    """One number of ours next to the paper's.

    Attributes
    ----------
    table : str
        Name of the paper's table in paper.json.
    method, counterpart : str
        Our row, and the paper's row that it is held against.
    data, metric : str
        As the report writes them.
    ours, paper : str
        Both numbers with their standard deviations, as the report writes them.
    verdict : {"better", "equal", "worse"}
    reason : str, optional
        Why ours is worse, a sentence.
    """

    table: str
    method: str
    counterpart: str
    data: str
    metric: str
    ours: str
    paper: str
    verdict: Verdict
    reason: str | None = None


@dataclass(frozen=True)
class Table:
    """A table of finished strings.

    Attributes
    ----------
    caption : str
    frame : DataFrame
        Cells are strings; the index is not shown.
    verdicts : dict
        (row number, column name) to "better", "equal" or "worse" than the paper, where there is something to compare.
        The report marks these cells.
    comparisons : tuple of Comparison
        What the table says about the paper, for the summary of the report.
    """

    caption: str
    frame: pd.DataFrame
    verdicts: dict[tuple[int, str], Verdict] = field(default_factory=dict)
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A drawing: `name` is its file's, `svg` the whole drawing as text."""

    name: str
    caption: str
    svg: str


Block = Text | Table | Figure

"""The blocks of a report. Experiments return them; the report renders them as Markdown and as HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

Verdict = Literal["better", "equal", "worse"]


@dataclass(frozen=True)
class Text:
    """A paragraph in which ``*this*`` is emphasized, ``**this**`` is strong and backticks mark code."""

    text: str


@dataclass(frozen=True)
class Comparison:
    """One of our numbers next to the paper's.

    Attributes
    ----------
    table : str
        Name of the paper's table in published.json.
    method : str
        Our row.
    counterpart : str
        The row of the paper that it is compared with.
    data : str
        Label of the data set.
    metric : str
        Label of the metric.
    ours : str
        Our mean and standard deviation, formatted.
    paper : str
        The paper's mean and standard deviation, formatted.
    verdict : {"better", "equal", "worse"}
        Ours compared with the paper's.
    reason : str, optional
        A sentence that says why ours is worse.
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
    """A table of formatted strings.

    Attributes
    ----------
    caption : str
        Shown above the table.
    frame : DataFrame
        Strings; the index is not shown.
    verdicts : dict
        From (row number, column name) to the verdict on that cell, which the report marks.
    comparisons : tuple of Comparison
        What the table says about the paper, for the summary of the report.
    """

    caption: str
    frame: pd.DataFrame
    verdicts: dict[tuple[int, str], Verdict] = field(default_factory=dict)
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A drawing: the name of its file, its caption, and the drawing as SVG text."""

    name: str
    caption: str
    svg: str


Block = Text | Table | Figure

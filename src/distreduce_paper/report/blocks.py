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
    """One of our numbers next to the paper's."""

    table: str  # name of the paper's table in published.json
    method: str  # our row
    counterpart: str  # the row of the paper that it is compared with
    data: str  # label of the data set
    metric: str  # label of the metric
    ours: str  # mean and standard deviation, formatted
    paper: str  # mean and standard deviation, formatted
    verdict: Verdict
    reason: str | None = None  # a sentence that says why ours is worse


@dataclass(frozen=True)
class Table:
    """A table of formatted strings; the index of the frame is not shown."""

    caption: str
    frame: pd.DataFrame
    verdicts: dict[tuple[int, str], Verdict] = field(default_factory=dict)  # by row number and column; marked
    comparisons: tuple[Comparison, ...] = ()  # what the table says about the paper, for the summary


@dataclass(frozen=True)
class Figure:
    """A drawing: the name of its file, its caption, and the drawing as SVG text."""

    name: str
    caption: str
    svg: str


Block = Text | Table | Figure

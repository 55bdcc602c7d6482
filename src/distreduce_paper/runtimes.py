"""The table of training times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from distreduce_paper.blocks import Block, Text
from distreduce_paper.cell import Cell
from distreduce_paper.comparison import comparison_tables
from distreduce_paper.experiment import Experiment
from distreduce_paper.prediction import CLASSIFICATION, REGRESSION, fitted, lacks_task, paper_row

NOTES = """\
Wall-clock seconds of a fit, reduction and Gaussian process together, one cell at a time with every core of the \
machine named above; the paper's are of an NVIDIA A100. Imports and the loading of compiled loops are not counted: \
every method first fits a small part of the data. Verdicts compare different machines: they say whether a laptop \
does what the paper needed an A100 for."""


_WARM: set[str] = set()  # methods whose compiled loops and imports this process has loaded


def timed(cell: Cell) -> dict[str, Any]:
    """Seconds of a fit, after one to a small part of the data if the method is new to this process."""
    if cell.method not in _WARM:
        fitted(replace(cell, quick=True))
        _WARM.add(cell.method)
    return {"fit_seconds": round(fitted(cell)[2], 4)}


def report(frame: pd.DataFrame) -> list[Block]:
    """The table of every data set beside the paper's."""
    seconds = {"fit_seconds": "seconds"}
    return [Text(NOTES), *comparison_tables(frame, "runtime_seconds_a100", seconds, paper_row, reason=_reason)]


def _reason(method: str, data: str) -> str:
    if method == "SDR-GP, paper's algorithm":
        return "Thousands of Adam steps, here on two cores: what eliminating the map and L-BFGS save."
    return "The machine of the paper is an A100."


EXPERIMENT = Experiment(
    name="runtimes",
    title="Training times",
    paper="the table of training times (appendix)",
    datasets=(*REGRESSION, *CLASSIFICATION),
    methods=(
        "SDR-GP",
        "SDR-GP, paper's recipe",
        "SDR-GP, paper's algorithm",
        "NCA-GP",
        "KSPCA-GP",
        "UMAP-GP",
        "DGP",
        "DKL",
    ),  # fmt: skip
    run=timed,
    report=report,
    skips=lacks_task,
    exclusive=True,
)

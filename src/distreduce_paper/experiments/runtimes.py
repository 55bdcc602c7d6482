"""The table of training times."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from distreduce_paper.experiment import Cell, Experiment
from distreduce_paper.experiments._prediction import CLASSIFICATION, REGRESSION, fit_predictor, lacks_task, paper_row
from distreduce_paper.report.comparison import comparison_tables

NOTES = """\
Wall-clock seconds of a fit, reduction and Gaussian process together, one cell at a time with every core of the \
machine named above; the paper's seconds are those of an NVIDIA A100. Imports and the loading of compiled loops do \
not count: each method first fits a small part of the data. The verdicts compare different machines: they say whether \
a laptop does what the paper needed an A100 for. The default `SDRGPRegressor()` is not in this table: it fits seven \
experts six times each and takes longer, as the tables of predictions show."""
METHODS = (
    *("SDR-GP, paper's recipe", "SDR-GP, paper's algorithm"),
    *("NCA-GP", "KSPCA-GP", "UMAP-GP", "DGP", "DKL"),
)

_WARM: set[str] = set()  # methods whose compiled loops and imports this process has loaded


def time_fit(cell: Cell) -> dict[str, Any]:
    """Time a fit, after a small one if the method is new to this process."""
    if cell.method not in _WARM:
        # Not measured: imports and compiled loops are loaded here.
        fit_predictor(replace(cell, quick=True))
        _WARM.add(cell.method)
    return {"fit_seconds": round(fit_predictor(cell)[2], 4)}


def _reason(method: str, data: str) -> str:
    if method == "SDR-GP, paper's algorithm":
        return "Thousands of Adam steps on two cores, which eliminating the map and L-BFGS save."
    return "The paper's machine is an A100."


EXPERIMENT = Experiment(
    name="runtimes",
    title="Training times",
    paper="the table of training times (appendix)",
    datasets=(*REGRESSION, *CLASSIFICATION),
    methods=METHODS,
    run=time_fit,
    report=partial(
        comparison_tables,
        table="runtime_seconds_a100",
        metrics={"fit_seconds": "seconds"},
        counterpart=paper_row,
        reason=_reason,
    ),  # fmt: skip
    notes=NOTES,
    skips=lacks_task,
    exclusive=True,
)

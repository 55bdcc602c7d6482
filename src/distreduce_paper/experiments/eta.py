"""The ablation of eta, the weight of the dependence between prototypes and targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from distreduce_paper.experiment import Cell, Experiment
from distreduce_paper.experiments._reductions import SCORES, draw_scores, fit_reduction
from distreduce_paper.published import label
from distreduce_paper.report.blocks import Block, Figure
from distreduce_paper.report.drawing import draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

METHODS = ("SDR", "SDR, paper's algorithm")  # those that take an eta
DEFAULT = 1000.0
NOTES = """\
The dotted vertical line is η = 1000, the paper's choice and our default. Horizontal lines are the methods without \
supervision at the same number of prototypes, from the experiment *prototypes*. The paper averages three seeds; we \
average five. The paper's algorithm is not swept: at η = 1000 it already empties most of its prototypes."""


def run(cell: Cell) -> dict[str, Any]:
    """Score SDR with one eta."""
    eta = float(str(cell.parameters["eta"]))
    _, results = fit_reduction(cell, int(str(cell.parameters["n_prototypes"])), eta=eta)
    return results


def report(frame: pd.DataFrame) -> list[Block]:
    """Draw one figure per data set: scores over eta, one column per number of prototypes."""
    own, others = frame[frame["experiment"] == "eta"], frame[frame["experiment"] == "prototypes"]
    others = others[~others["method"].str.startswith("SDR")]  # methods without eta
    return [_figure(str(name), part, others) for name, part in own.groupby("data", sort=False)]


def _figure(data: str, part: pd.DataFrame, others: pd.DataFrame) -> Figure:
    columns = {f"m = {m:.0f}": cells for m, cells in part.groupby("n_prototypes")}
    # Methods without eta at the same number of prototypes, keyed like the columns.
    flat = {f"m = {m:.0f}": cells for m, cells in others[others["data"] == data].groupby("n_prototypes")}

    def draw(figure: Drawing) -> None:
        axes = draw_scores(figure, columns, SCORES, "eta", flat)
        for ax in axes.ravel():
            ax.set_xscale("log")
            ax.axvline(DEFAULT, color="#999999", linestyle=":", linewidth=1.0, zorder=1)
        for ax in axes[-1]:
            ax.set_xlabel("η")

    caption = f"{label(data)}: scores over η, means over seeds with bands of one standard deviation."
    return draw_figure(f"eta_{data}", caption, (1.2 + 2.9 * len(columns), 7.4), draw)


EXPERIMENT = Experiment(
    name="eta",
    title="Ablation of η: the strength of the dependence",
    paper="both figures of the η ablation (appendix)",
    kind="reduction",
    datasets=("coil20", "snareseq"),
    task="classification",
    methods=("SDR",),
    grid={"n_prototypes": (20, 100, 180), "eta": (1, 10, 100, 1000, 10_000, 100_000)},
    quick_grid={"n_prototypes": (10, 30), "eta": (1, 1000, 100_000)},
    skips=lambda data, method: method not in METHODS,
    sources=("eta", "prototypes"),
    run=run,
    report=report,
    notes=NOTES,
)

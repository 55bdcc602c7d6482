"""The MLL–MACE figure and the calibration curves, from cells of Table 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from distreduce.metrics.held_out import LEVELS
from distreduce.plotting.calibration import draw_calibration
from distreduce_paper.experiment import Experiment
from distreduce_paper.experiments._prediction import OTHERS, OURS, REGRESSION
from distreduce_paper.published import label
from distreduce_paper.report.blocks import Block, Table
from distreduce_paper.report.comparison import DASH, format_mean
from distreduce_paper.report.drawing import add_legend, draw_figure, method_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTES = """\
MACE is the mean distance between the expected and the observed share of targets in central intervals, over 99 \
levels, as in uncertainty-toolbox. Intervals are Gaussian, except those of *SDR-GP* and *embedding alone*, which are \
their own `predict_quantiles`: a mixture of two Gaussians, fitted to leave-one-out errors. A method can be well \
calibrated and useless, for example if it always predicts the mean and the spread of the targets. Top right is best: \
high density, low calibration error."""


def report(frame: pd.DataFrame) -> list[Block]:
    """Show both figures and the numbers behind the first."""
    if "coverage" not in frame:
        return []
    names = list(dict.fromkeys(frame["data"]))
    width = 3.4 * len(names)
    return [
        draw_figure(
            "mll_mace",
            "Mean log density against calibration error, means over seeds. The error falls to the right.",
            (width, 3.9),
            lambda figure: _draw_tradeoff(figure, frame, names),
        ),
        draw_figure(
            "calibration_curves",
            "Observed against expected share of targets in central intervals, means over seeds. Above the diagonal is "
            "under-confident, below over-confident.",
            (width, 4.1),
            lambda figure: _draw_curves(figure, frame, names),
        ),
        _table(frame),
    ]


def _draw_tradeoff(figure: Figure, frame: pd.DataFrame, names: list[str]) -> None:
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    means = frame.groupby(["data", "method"], sort=False)[["mll", "mace"]].mean()
    for ax, name in zip(axes, names, strict=True):
        for method, row in means.loc[name].iterrows():
            style = method_style(str(method))
            # Variants of a method are hollow.
            face = "none" if style["linestyle"] == "--" else style["color"]
            ax.plot(
                row["mace"], row["mll"], marker=style["marker"], color=style["color"], markerfacecolor=face,
                linestyle="", markersize=7, label=method,
            )  # fmt: skip
        ax.invert_xaxis()  # so that top right is best
        ax.set(title=label(name), xlabel="MACE (lower is better →)")
    axes[0].set_ylabel("MLL (higher is better)")
    add_legend(figure, 5)


def _draw_curves(figure: Figure, frame: pd.DataFrame, names: list[str]) -> None:
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        curves, styles = {}, []
        for method, part in frame[frame["data"] == name].groupby("method", sort=False):
            # All cells have the same levels, so the curves can be averaged point by point.
            curves[str(method)] = LEVELS, np.mean(part["coverage"].tolist(), axis=0)
            style = method_style(str(method))
            styles.append({"color": style["color"], "linestyle": style["linestyle"], "linewidth": 1.2})
        draw_calibration(ax, curves, styles)
        ax.set(title=label(name), ylabel="")
    axes[0].set_ylabel("observed share in the interval")
    add_legend(figure, 5)


def _table(frame: pd.DataFrame) -> Table:
    rows = []
    for method, part in frame.groupby("method", sort=False):
        row = {"method": str(method)}
        for name, group in part.groupby("data", sort=False):
            row[f"{label(str(name))}: MACE"] = format_mean(group["mace"].to_numpy(), 2)
            row[f"{label(str(name))}: in 90 % intervals"] = f"{100 * group['coverage_90'].mean():.0f} %"
        rows.append(row)
    caption = "Calibration error, and the share of held-out targets in central 90 % intervals."
    return Table(caption, pd.DataFrame(rows).fillna(DASH))


EXPERIMENT = Experiment(
    name="calibration",
    title="Calibration",
    paper="the MLL–MACE figure and the calibration curves",
    datasets=REGRESSION,
    methods=(*OURS, *OTHERS),
    sources=("regression",),
    report=report,
    notes=NOTES,
)

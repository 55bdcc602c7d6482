"""Pictures of the S-curve and the Swiss roll, and of the planes that the methods map them to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from distreduce_paper.experiment import Cell, Experiment
from distreduce_paper.experiments._reductions import round_list
from distreduce_paper.experiments.neighbours import make_embedding
from distreduce_paper.problems import load_whole
from distreduce_paper.published import label
from distreduce_paper.report.blocks import Block
from distreduce_paper.report.drawing import draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATASETS = ("s_curve", "swiss_roll")  # with three features, which can be drawn
DOTS: dict[str, Any] = {"cmap": "viridis", "s": 16.0, "linewidths": 0.0, "alpha": 1.0}
NOTES = """\
All methods see the same 100 samples, standardized, with the position along the curve as the target. The planes show \
z(x) by each method's map. The settings are those of the tables below (*neighbours*)."""


def run(cell: Cell) -> dict[str, Any]:
    """Return the places of all samples in the plane, the samples themselves, and their targets."""
    X, y = load_whole(cell.data, cell.seed, quick=cell.quick)
    Z = make_embedding(cell).fit(X, y).transform(X)
    points = {"first": Z[:, 0], "second": Z[:, 1], "x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "target": y}
    return {name: round_list(values) for name, values in points.items()}


def report(frame: pd.DataFrame) -> list[Block]:
    """Draw one figure: one row per data set, the data first, then one panel per method."""
    first = frame[frame["seed"] == 0]
    if first.empty:
        return []
    names, methods = list(dict.fromkeys(first["data"])), list(dict.fromkeys(first["method"]))
    caption = "The samples, and the plane that each method maps them to; the colour is the target."
    size = (0.3 + 2.3 * (1 + len(methods)), 0.3 + 2.4 * len(names))
    return [draw_figure("toys", caption, size, lambda figure: _draw(figure, first, names, methods))]


def _draw(figure: Figure, first: pd.DataFrame, names: list[str], methods: list[str]) -> None:
    shape = (len(names), 1 + len(methods))
    for row_number, name in enumerate(names):
        rows = first[first["data"] == name].set_index("method")
        space = figure.add_subplot(*shape, row_number * shape[1] + 1, projection="3d")
        # Every method has seen the same samples, so any row has them.
        data = rows.iloc[0]
        space.scatter(data["x"], data["y"], data["z"], c=data["target"], depthshade=False, **DOTS)
        space.set(title=label(name), xticklabels=[], yticklabels=[], zticklabels=[])
        space.view_init(elev=8, azim=-80)
        space.set_box_aspect(None, zoom=1.15)
        for column, method in enumerate(methods, start=2):
            ax = figure.add_subplot(*shape, row_number * shape[1] + column)
            if method in rows.index:
                ax.scatter(rows.loc[method, "first"], rows.loc[method, "second"], c=rows.loc[method, "target"], **DOTS)
            ax.set(title=method, xticks=[], yticks=[])
            ax.spines[:].set(visible=True, color="#CCCCCC")
            ax.set_aspect("equal", adjustable="datalim")


EXPERIMENT = Experiment(
    name="toys",
    title="Pictures of the S-curve and the Swiss roll",
    paper="the figure of the appendix on dimensionality reduction",
    kind="embedding",
    datasets=DATASETS,
    task="regression",
    methods=("SDR", "SDR, paper's algorithm", "KSPCA", "UMAP"),
    seeds=1,
    skips=lambda data, method: data not in DATASETS,
    run=run,
    report=report,
    notes=NOTES,
)

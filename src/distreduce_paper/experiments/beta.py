"""The ablation of beta: how far the paper's algorithm moves the embedding towards its map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from distreduce import SDR
from distreduce.baselines import EmbeddingGP
from distreduce.gp import GPRegressor
from distreduce.metrics import regression_scores
from distreduce_paper.experiment import Cell, Experiment
from distreduce_paper.experiments._prediction import REGRESSION
from distreduce_paper.experiments._reductions import draw_level, round_digits
from distreduce_paper.methods import PAPER_ALGORITHM
from distreduce_paper.problems import load_split
from distreduce_paper.published import label
from distreduce_paper.report.blocks import Block
from distreduce_paper.report.drawing import add_legend, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHOD = "SDR-GP, paper's algorithm"
BASELINES = ("SDR-GP, paper's recipe", "NCA-GP", "KSPCA-GP", "UMAP-GP", "DKL", "DGP")
NOTES = """\
The paper's algorithm moves Z to (1 − β)Z + βKL after each embedding step. `SDR` eliminates the map by default, so it \
has no such move and no β: that solution is the dashed line *SDR-GP, paper's recipe*. The paper draws means over \
three seeds; we draw means over five."""


def run(cell: Cell) -> dict[str, Any]:
    """Return the errors of the paper's GP on the training and on the held-out part."""
    parts = load_split(cell.data, cell.seed, quick=cell.quick)
    beta = float(str(cell.parameters["beta"]))
    embedding = SDR.paper(perplexity=20.0, beta=beta, random_state=cell.seed, **PAPER_ALGORITHM)
    model = EmbeddingGP(embedding, GPRegressor(gp_optimizer="adam"), task="regression")
    model.fit(parts.X_train, parts.y_train)
    results: dict[str, Any] = {}
    for name, X, y in (("train", parts.X_train, parts.y_train), ("test", parts.X_test, parts.y_test)):
        scores = regression_scores(y, *model.predict(X, return_std=True))
        results |= {f"{name}_{score}": round_digits(scores[score], 6) for score in ("mse", "mll")}
    return results


def report(frame: pd.DataFrame) -> list[Block]:
    """Draw errors over beta, one panel per data set, with the other methods as horizontal lines."""
    own = frame[frame["experiment"] == "beta"]
    if own.empty:  # only cells of Table 1
        return []
    names = list(dict.fromkeys(own["data"]))
    caption = "Mean squared error over β (means over seeds, bars of one standard deviation)."
    size = (3.3 * len(names), 3.6)
    return [draw_figure("beta", caption, size, lambda figure: _draw(figure, frame, own, names))]


def _draw(figure: Figure, frame: pd.DataFrame, own: pd.DataFrame, names: list[str]) -> None:
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        _draw_curves(ax, own[own["data"] == name])
        # Horizontal lines, from the cells of Table 1.
        others = frame[(frame["experiment"] == "regression") & (frame["data"] == name)]
        for method, value in others.groupby("method", sort=False)["mse"].mean().items():
            if method in BASELINES:
                draw_level(ax, str(method), value)
        ax.set(title=label(name), xlabel="β", yscale="log")
        # Plain numbers on the logarithmic axis, at minor ticks too.
        for set_formatter in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
            set_formatter(lambda value, _: f"{value:g}")
    axes[0].set_ylabel("mean squared error")
    add_legend(figure)


def _draw_curves(ax: Axes, part: pd.DataFrame) -> None:
    for column, part_name, marker, colour in (
        ("test_mse", "held out", "o", "#0072B2"),
        ("train_mse", "training", "s", "#56B4E9"),
    ):
        groups = part.groupby("beta")[column]
        mean, std = groups.mean(), groups.std(ddof=1).fillna(0.0)  # a single seed has no deviation
        ax.errorbar(mean.index, mean, std, marker=marker, color=colour, capsize=2, label=f"{METHOD}, {part_name}")


EXPERIMENT = Experiment(
    name="beta",
    title="Ablation of β",
    paper="the figure of the β ablation (appendix)",
    datasets=REGRESSION,
    task="regression",
    methods=(METHOD,),
    grid={"beta": (0.0, 0.25, 0.5, 0.75, 1.0)},
    quick_grid={"beta": (0.0, 0.5, 1.0)},
    run=run,
    report=report,
    notes=NOTES,
    sources=("beta", "regression"),
    skips=lambda data, method: method != METHOD,
)

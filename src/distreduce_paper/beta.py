"""The ablation of beta: how far the paper's algorithm moves the embedding towards its map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from distreduce import SDR
from distreduce.baselines import EmbeddingGP
from distreduce.gp import GPRegressor
from distreduce.metrics import regression_scores
from distreduce_paper.blocks import Block, Text
from distreduce_paper.cell import Cell
from distreduce_paper.drawing import drawn, legend, style_of
from distreduce_paper.experiment import Experiment
from distreduce_paper.methods import PAPER_ALGORITHM
from distreduce_paper.paper import label
from distreduce_paper.prediction import REGRESSION
from distreduce_paper.problems import split

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHOD = "SDR-GP, paper's algorithm"
BASELINES = ("SDR-GP, paper's recipe", "NCA-GP", "KSPCA-GP", "UMAP-GP", "DKL", "DGP")
NOTES = """\
The paper's algorithm moves Z to (1 − β)Z + βKL after each embedding step; with the map eliminated, as in `SDR` by \
default, there is no such move and no β: that solution is the dashed line *SDR-GP, paper's recipe*. The paper \
draws means over three seeds; here five."""


def run(cell: Cell) -> dict[str, Any]:
    """Errors of the paper's GP on the training and on the held-out part."""
    parts = split(cell.data, cell.seed, quick=cell.quick)
    beta = float(cell.parameters["beta"])  # type: ignore[arg-type]
    embedding = SDR(perplexity=20.0, beta=beta, random_state=cell.seed, **PAPER_ALGORITHM)
    model = EmbeddingGP(embedding, GPRegressor(gp_optimizer="adam"), task="regression")
    model.fit(parts.X_train, parts.y_train)
    found: dict[str, Any] = {}
    for name, X, y in (("train", parts.X_train, parts.y_train), ("test", parts.X_test, parts.y_test)):
        scores = regression_scores(y, *model.predict(X, return_std=True))
        found |= {f"{name}_{score}": float(f"{scores[score]:.6g}") for score in ("mse", "mll")}
    return found


def report(frame: pd.DataFrame) -> list[Block]:
    """Errors over beta, a panel a data set, and the other methods as flat lines."""
    blocks: list[Block] = [Text(NOTES)]
    own = frame[frame["experiment"] == "beta"] if len(frame) else frame
    names = [name for name in dict.fromkeys(own["data"])] if len(own) else []
    if names:
        caption = "Mean squared error over β (means over seeds, bars of one standard deviation)."
        blocks.append(drawn("beta", caption, (3.3 * len(names), 3.6), lambda figure: _draw(figure, frame, own, names)))
    return blocks


def _draw(figure: Figure, frame: pd.DataFrame, own: pd.DataFrame, names: list[str]) -> None:
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        _draw_curves(ax, own[own["data"] == name])
        others = frame[(frame["experiment"] == "regression") & (frame["data"] == name)]
        for method, value in others.groupby("method", sort=False)["mse"].mean().items():
            if method in BASELINES:
                look = style_of(str(method))
                ax.axhline(value, color=look["color"], linestyle="--", linewidth=1.0, label=str(method))
        ax.set(title=label(name), xlabel="β", yscale="log")
        for axis in (ax.yaxis.set_major_formatter, ax.yaxis.set_minor_formatter):
            axis(lambda value, _: f"{value:g}")
    axes[0].set_ylabel("mean squared error")
    legend(figure)


def _draw_curves(ax: Axes, part: pd.DataFrame) -> None:
    for column, part_name, marker, colour in (
        ("test_mse", "held out", "o", "#0072B2"),
        ("train_mse", "training", "s", "#56B4E9"),
    ):
        groups = part.groupby("beta")[column]
        mean, std = groups.mean(), groups.std(ddof=1).fillna(0.0)
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
    sources=("beta", "regression"),
    skips=lambda data, method: method != METHOD,
)

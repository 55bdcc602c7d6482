"""What the experiments on reductions and embeddings share: a fit with its scores, and panels of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce.metrics import reduction_scores
from distreduce.plotting.palette import class_palette
from distreduce_paper.experiment import Cell
from distreduce_paper.measure import measure
from distreduce_paper.methods import REDUCTIONS
from distreduce_paper.problems import get_problem, load_whole
from distreduce_paper.published import label
from distreduce_paper.report.drawing import add_legend, method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The paper's three scores and the labels of their axes.
SCORES = {"homogeneity": "homogeneity × 100", "nmi": "k-means NMI × 100", "silhouette": "silhouette × 100"}


def fit_reduction(cell: Cell, n_prototypes: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Fit the cell's method to all samples, with `options` overriding its own; return it and its scores and seconds."""
    X, y = load_whole(cell.data, cell.seed, quick=cell.quick)
    model = REDUCTIONS[cell.method](n_prototypes, get_problem(cell.data).perplexity, cell.seed)
    if options:
        model.set_params(**options)
    # Only the fit counts; loading and scoring do not.
    with measure() as cost:
        model.fit(X, y)
    scores = {name: round_digits(value) for name, value in reduction_scores(model, y).items()}
    used = int(np.count_nonzero(model.prototype_weights_))
    return model, {**scores, "used": used, "fit_seconds": round_digits(cost.seconds)}


def round_digits(value: float, digits: int = 5) -> float:
    """Round to significant digits: the data support no more, and stored results stay short."""
    return float(f"{value:.{digits}g}")


def round_list(values: Iterable[float], digits: int = 4) -> list[float]:
    """Round the numbers of a figure."""
    return [round_digits(value, digits) for value in values]


def draw_scores(
    figure: Figure,
    columns: Mapping[str, pd.DataFrame],
    scores: Mapping[str, str],
    over: str,
    flat: Mapping[str, pd.DataFrame] | None = None,
) -> NDArray[Any]:
    """Draw means and bands of one standard deviation: one row per score, one column per frame, one curve per method.

    `columns` go from a title to a frame with the columns method, `over` (the horizontal axis) and the scores; `scores`
    from a column of the frames to the label of its axis; `flat` from a title to the cells of methods that do not vary
    with `over`, drawn as horizontal lines. Returns the axes, one row per score.
    """
    axes = figure.subplots(len(scores), len(columns), sharex=True, squeeze=False)
    for row, (score, name) in zip(axes, scores.items(), strict=True):
        for ax, (title, cells) in zip(row, columns.items(), strict=True):
            for method, own in cells.groupby("method", sort=False):
                _draw_curve(ax, str(method), own.groupby(over)[score])
            for method, own in (flat or {}).get(title, cells.iloc[:0]).groupby("method", sort=False):
                draw_level(ax, str(method), own[score].mean())
        # Labels at the left and titles at the top only: the panels form a table.
        row[0].set_ylabel(name)
    for ax, title in zip(axes[0], columns, strict=True):
        ax.set_title(title)
    add_legend(figure)
    return np.asarray(axes)


def draw_level(ax: Axes, method: str, value: float) -> None:
    """Draw a method that does not vary along the horizontal axis."""
    ax.axhline(value, color=str(method_style(method)["color"]), linestyle="--", linewidth=1.0, label=method)


def _draw_curve(ax: Axes, method: str, groups: Any) -> None:
    mean, std = groups.mean(), groups.std(ddof=1).fillna(0.0)  # a single seed has no deviation
    style = method_style(method)
    ax.plot(mean.index, mean, label=method, **style)  # type: ignore[arg-type]
    ax.fill_between(mean.index, mean - std, mean + std, color=str(style["color"]), alpha=0.15, linewidth=0)


def draw_prototypes(figure: Figure, frame: pd.DataFrame) -> None:
    """Draw prototypes in the plane by class and weight: one row per data set, one column per method."""
    names, methods = list(dict.fromkeys(frame["data"])), list(dict.fromkeys(frame["method"]))
    axes = figure.subplots(len(names), len(methods), squeeze=False)
    for ax in axes.ravel():
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color="#CCCCCC")
    classes = frame["heaviest"].map(max).groupby(frame["data"]).max() + 1  # the same colours in every column
    for row in frame.to_dict("records"):
        _scatter(axes[names.index(row["data"]), methods.index(row["method"])], row, classes[row["data"]])
    for ax, name in zip(axes[:, 0], names, strict=True):
        ax.set_ylabel(label(name))
    for ax, method in zip(axes[0], methods, strict=True):
        ax.set_title(method)


def _scatter(ax: Axes, row: Mapping[Any, Any], n_classes: int) -> None:
    first, second, heaviest = (np.asarray(row[name]) for name in ("first", "second", "heaviest"))
    colours = class_palette(n_classes)[heaviest]
    # With few distinct sizes, the SVG defines each marker once and is several times smaller.
    areas = 2.0 ** np.round(np.log2(3000.0 * np.asarray(row["weight"])))
    for area in np.unique(areas):
        own = areas == area
        ax.scatter(first[own], second[own], area, colours[own], linewidths=0.4, edgecolors="white")
    ax.margins(0.1)
    ax.set_aspect("equal", adjustable="datalim")

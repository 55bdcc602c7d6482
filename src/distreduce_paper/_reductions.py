"""What the experiments on reductions and embeddings share: a fit with its scores, and panels of scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from distreduce._utils.typing import Array
from distreduce.metrics import reduction_scores
from distreduce.plotting.palette import class_palette
from distreduce_paper import problems
from distreduce_paper.cell import Cell
from distreduce_paper.drawing import legend, style_of
from distreduce_paper.measure import measured
from distreduce_paper.methods import REDUCTIONS
from distreduce_paper.paper import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The paper's three scores, as axes name them.
SCORES = {"homogeneity": "homogeneity × 100", "nmi": "k-means NMI × 100", "silhouette": "silhouette × 100"}


def fitted(cell: Cell, n_prototypes: int, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The cell's method fitted to all samples, with `options` in place of its own; and its scores and seconds."""
    X, y = problems.whole(cell.data, cell.seed, quick=cell.quick)
    model = REDUCTIONS[cell.method](n_prototypes, problems.problem(cell.data).perplexity, cell.seed)
    if options:
        model.set_params(**options)
    with measured() as cost:
        model.fit(X, y)
    scores = {name: rounded(value) for name, value in reduction_scores(model, y).items()}
    used = int(np.count_nonzero(model.prototype_weights_))
    return model, {**scores, "used": used, "fit_seconds": rounded(cost.seconds)}


def rounded(value: float, digits: int = 5) -> float:
    """To so many significant digits: more are not in the data, and records stay short."""
    return float(f"{value:.{digits}g}")


def rounded_list(values: Iterable[float], digits: int = 4) -> list[float]:
    """Numbers for a figure."""
    return [rounded(value, digits) for value in values]


def panels(
    figure: Figure,
    columns: Mapping[str, pd.DataFrame],
    scores: Mapping[str, str],
    over: str,
    flat: Mapping[str, pd.DataFrame] | None = None,
) -> Array:
    """Means and bands of one standard deviation: a row a score, a column a title with its cells, a curve a method.

    Parameters
    ----------
    figure : Figure
    columns : mapping
        From a title to a frame with the columns method, `over` and the scores.
    scores : mapping
        From the frames' columns to what the axes say.
    over : str
        Column on the horizontal axis.
    flat : mapping, optional
        From a title to the cells of methods that do not vary with `over`: level lines.

    Returns
    -------
    array of Axes
    """
    axes = figure.subplots(len(scores), len(columns), sharex=True, squeeze=False)
    for row, (score, name) in zip(axes, scores.items(), strict=True):
        for ax, (title, cells) in zip(row, columns.items(), strict=True):
            for method, own in cells.groupby("method", sort=False):
                _curve(ax, str(method), own.groupby(over)[score])
            for method, own in (flat or {}).get(title, cells.iloc[:0]).groupby("method", sort=False):
                look = style_of(str(method))
                ax.axhline(own[score].mean(), color=look["color"], linestyle="--", linewidth=1.0, label=str(method))
        row[0].set_ylabel(name)
    for ax, title in zip(axes[0], columns, strict=True):
        ax.set_title(title)
    legend(figure)
    return np.asarray(axes)


def _curve(ax: Axes, method: str, groups: Any) -> None:
    mean, std = groups.mean(), groups.std(ddof=1).fillna(0.0)
    look = style_of(method)
    ax.plot(mean.index, mean, label=method, **look)  # type: ignore[arg-type]
    ax.fill_between(mean.index, mean - std, mean + std, color=str(look["color"]), alpha=0.15, linewidth=0)


def prototype_panels(figure: Figure, frame: pd.DataFrame) -> None:
    """Prototypes in the plane by class and weight: a row a data set, a column a method."""
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
    # Few sizes let the drawing name each shape once, which makes it several times smaller.
    areas = 2.0 ** np.round(np.log2(3000.0 * np.asarray(row["weight"])))
    for area in np.unique(areas):
        own = areas == area
        ax.scatter(first[own], second[own], area, colours[own], linewidths=0.4, edgecolors="white")
    ax.margins(0.1)
    ax.set_aspect("equal", adjustable="datalim")

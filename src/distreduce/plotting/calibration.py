"""Held-out predictions: calibration curves, reliability of classes, and predictions against the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from distreduce._utils.text import number_text
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.metrics.calibration import calibration_curve, mean_absolute_calibration_error
from distreduce.metrics.held_out import wilson_interval
from distreduce.plotting.axes import draw_legend, get_axes
from distreduce.plotting.palette import class_palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 10  # samples whose accuracy is not drawn without a bar
IDEAL: dict[str, Any] = {"linestyle": ":", "color": "#444444", "linewidth": 1.2, "label": "ideal"}


def plot_calibration(
    predictions: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]], ax: Axes | None = None, *, n_levels: int = 99
) -> Axes:
    """Draw observed against expected coverage of central intervals, and shade the area between curve and diagonal.

    Parameters
    ----------
    predictions : mapping of str to (y, mean, std)
        Name of each model and its Gaussian predictions, as for :func:`distreduce.metrics.calibration_curve`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    n_levels : int, default=99
        Number of levels of the curves and of the error (MACE) in the legend.

    Returns
    -------
    matplotlib axes
        The diagonal is the first line; the curves follow in the order of the mapping.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = plot_calibration({"GP": ([0.1, 0.9], [0.0, 1.0], [0.2, 0.3])}, Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['ideal', 'GP (MACE 0.244)']
    """
    named = isinstance(predictions, Mapping)
    if not named or not predictions or any(len(given) != 3 for given in predictions.values()):
        raise InvalidInputError("predictions must map the name of at least one model to its (y, mean, std).")
    # Compute everything before a figure is made: invalid predictions leave no empty window.
    curves = {}
    for name, given in predictions.items():
        error = mean_absolute_calibration_error(*given, n_levels=n_levels)
        curves[f"{name} (MACE {error:.3f})"] = calibration_curve(*given, n_levels=n_levels)
    ax = get_axes(ax)
    draw_calibration(ax, curves)
    for line in ax.get_lines()[1:]:  # without the diagonal
        expected, observed = line.get_data()
        ax.fill_between(expected, expected, observed, color=line.get_color(), alpha=0.12, linewidth=0)
    ax.text(0.03, 0.97, "under-confident", ha="left", va="top", color="#666666", fontsize="small")
    ax.text(0.97, 0.03, "over-confident", ha="right", va="bottom", color="#666666", fontsize="small")
    draw_legend(ax, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def draw_calibration(
    ax: Axes, curves: Mapping[str, tuple[ArrayLike, ArrayLike]], looks: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Draw the diagonal and one curve (expected, observed) per model, with `looks` as options of the lines."""
    looks = looks or [{"color": tuple(colour), "linewidth": 1.6} for colour in class_palette(len(curves))]
    ax.plot([0, 1], [0, 1], **IDEAL)
    for (name, (expected, observed)), look in zip(curves.items(), looks, strict=True):
        ax.plot(expected, observed, label=name, **look)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="expected share in the interval", ylabel="observed share in the interval")
    ax.set_aspect("equal")


def draw_reliability(
    ax: Axes, bins: Mapping[str, tuple[Array, Array, Array]], looks: Sequence[Mapping[str, Any]], n_samples: int
) -> None:
    """Draw accuracy against confidence, one curve (confidence, accuracy, share of `n_samples`) per model.

    Columns show the share of the first model's samples in each bin of confidence, bars how uncertain its accuracy is.
    Of the other models, bins of fewer than `FEW` samples are not drawn.
    """
    confidence, right, shares = next(iter(bins.values()))
    width = 1 / len(shares)
    # Only the first model's columns: those of several models would hide each other.
    ax.bar(width * np.arange(len(shares)), shares, 0.94 * width, align="edge", color="#d3d8de", zorder=0)
    ax.plot([0, 1], [0, 1], **IDEAL)
    filled = shares > 0
    ends = wilson_interval(right[filled], n_samples * shares[filled])
    ax.vlines(confidence[filled], *ends, color=looks[0]["color"], linewidth=3.5, alpha=0.35)
    for place, ((name, (confidence, right, share)), look) in enumerate(zip(bins.items(), looks, strict=True)):
        shown = n_samples * share >= (FEW if place else 1)  # the others have no bars, which few samples need
        ax.plot(confidence[shown], right[shown], ".-", label=name, **look)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence of the prediction", ylabel="share of correct predictions")
    ax.set_aspect("equal")


def draw_predictions(ax: Axes, parts: Array, **look: Any) -> None:
    """Draw predictions against true values; the rows of `parts` are y, mean, and the ends of the intervals (bars)."""
    from matplotlib.ticker import MaxNLocator

    y, mean, low, high = parts
    # One line with gaps: a path per bar would make the drawing several times larger.
    gaps = np.full(len(y), np.nan)
    ax.plot(np.c_[y, y, gaps].ravel(), np.c_[low, high, gaps].ravel(), linewidth=1.0, alpha=0.3, **look)
    ends = np.array([y.min(), y.max()])
    ax.plot(ends, ends, **IDEAL)
    dots = {"linestyle": "", "marker": "o", "markersize": 4.5, "markeredgewidth": 0.5, "markeredgecolor": "#ffffff"}
    ax.plot(y, mean, gid="dots", **{**look, **dots})  # draw_svg finds the line by its gid
    ax.set(xlabel="true value", ylabel="predicted value")
    for axis in (ax.xaxis, ax.yaxis):  # 400,000 instead of 0.4 and a distant "1e6"
        axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(lambda value, _: number_text(value))

"""A heat map of the coupling: which targets each prototype stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from distreduce.estimators._base import BaseReduction
from distreduce.estimators._validate import read_weights
from distreduce.plotting.axes import check_reduction, get_axes
from distreduce.plotting.targets import prototype_shares, sample_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_FONT_SIZE = 5.0  # points
MAX_NAME = 24  # characters of a class name
MAX_NUMBERS = 20  # of prototypes below the heat map
MAX_GRID = 80  # prototypes beyond which lines between them would hide the cells


def plot_coupling(
    model: BaseReduction,
    y: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    target: int = 0,
    n_bins: int = 10,
) -> Axes:
    """Draw a heat map of targets by prototypes; each column sums to one.

    Columns are the prototypes that carry known targets, sorted by their largest share and then by decreasing weight.
    Continuous targets are cut into bins of equal width. The coupling has seen them; ``prototype_evidence_`` has not.

    Parameters
    ----------
    model : SDR or DistR
        A fitted model.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Targets of the samples of the fit, None or NaN where unknown. Without them, SDR shows the targets it keeps for
        its prototypes: class shares, or the bin of each mean. DistR keeps none and needs y.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    sample_weight : array-like of shape (n_samples,), optional
        The weights of the fit, if it had any and `y` is given.
    target : int, default=0
        Which column of a continuous target with several columns to draw.
    n_bins : int, default=10
        Number of bins of a continuous target.

    Returns
    -------
    matplotlib axes
        The heat map is the only image.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SDR(n_prototypes=10, random_state=0).fit(X, y)
    >>> plot_coupling(model, y, Figure().subplots()).images[0].get_array().shape
    (3, 10)
    """
    check_reduction(model)
    # The mass of each target (row) on each prototype (column).
    if y is None:
        rows, names, title = prototype_shares(model, target, n_bins)
        carried = np.where(model.prototype_weights_ > 0, rows.T, 0.0)
    else:
        rows, names, title = sample_shares(model, y, target, n_bins)
        carried = (model.coupling_.T @ (read_weights(sample_weight, rows)[:, None] * rows)).T
    # Shares of each prototype, sorted so that equal targets stand side by side.
    used = np.flatnonzero(carried.sum(axis=0) > 0)
    shares = carried[:, used] / carried[:, used].sum(axis=0)
    order = np.lexsort((-model.prototype_weights_[used], shares.argmax(axis=0)))
    # The heat map.
    ax = get_axes(ax)
    image = ax.imshow(
        shares[:, order], aspect="auto", cmap="Blues", vmin=0, vmax=1, origin="lower", interpolation="nearest"
    )
    _label_cells(ax, names, [str(k) for k in used[order]])
    ax.set_xlabel("prototype, ordered by target")
    ax.set_ylabel(title, parse_math=False)
    ax.figure.colorbar(image, ax=ax, label="share of the prototype's samples")
    return ax


def _label_cells(ax: Axes, rows: list[str], columns: list[str]) -> None:
    """Name the rows in letters that fit, number some of the columns, and draw lines between columns if they are few."""
    height = 72 * ax.get_window_extent().height / ax.figure.dpi / len(rows)  # of a row, in points
    size = min(10.0, max(MIN_FONT_SIZE, 0.85 * height))
    step = int(np.ceil(MIN_FONT_SIZE / (0.85 * height)))  # skip names where even the smallest letters would touch
    names = [name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…" for name in rows]
    ax.set_yticks(range(0, len(rows), step), names[::step], fontsize=size, parse_math=False)
    every = -(-len(columns) // MAX_NUMBERS)
    ax.set_xticks(range(0, len(columns), every), columns[::every], rotation=90, fontsize="small")
    if len(columns) <= MAX_GRID:
        ax.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
        ax.grid(which="minor", axis="x", color="white", linewidth=0.6)
        ax.tick_params(which="minor", length=0)

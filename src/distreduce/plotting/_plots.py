"""Pictures of a fitted reduction and of the calibration of predictions: matplotlib axes in, matplotlib axes out.

matplotlib is imported when a picture is drawn, not with the package, and none of its global settings is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.metrics.calibration import calibration_curve, mean_absolute_calibration_error
from distreduce.plotting.markers import SHAPES, Shapes, marker_path
from distreduce.plotting.palette import (
    OKABE_ITO,
    UNKNOWN,
    Colours,
    class_palette,
    prototype_rows,
    target_colours,
    target_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration", "plot_coupling", "plot_embedding", "plot_history", "plot_prototypes"]


# Points² that all prototypes share: 60 equal ones get 100 each, a disc of 11 points.
TOTAL_AREA = 6000.0
SAMPLE_AREA = 9.0
MIN_LETTERS = 5.0  # points
MAX_NAME = 24  # characters of a class beside the heat map
TERMS = ("objective", "supervision", "gromov_wasserstein", "dependence", "projection")


def plot_embedding(
    model: BaseReduction,
    y: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    prototypes: bool | None = None,
    target: int = 0,
    components: tuple[int, int] | None = None,
) -> Axes:
    """Samples as small translucent dots, and over them the prototypes: area is weight, colour is target.

    Class shares are a blend of the classes' colours. With more than eight classes a mark has the shape of its class as
    well, a prototype that of its most frequent one: no two of 24 classes have colour and shape in common. An embedding
    of one dimension is drawn against the target, one of more than two in the plane of its first two principal axes.

    Parameters
    ----------
    model : SDR or DistR
        A fitted model.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Targets of the samples of the fit, None or NaN where unknown; without them the samples are grey. DistR has no
        targets of its own, so that here its prototypes take the mean of these.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    prototypes : bool, optional
        Whether to draw the prototypes; by default if there are fewer of them than samples.
    target : int, default=0
        Column of a continuous target with several columns.
    components : (int, int), optional
        Two dimensions of the embedding to draw instead of the principal axes.

    Returns
    -------
    matplotlib axes
        With the samples, if drawn, as first collection and the prototypes as last.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDR
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SDR(n_prototypes=10, random_state=0).fit(X, y)
    >>> ax = plot_embedding(model, y, Figure().subplots())
    >>> len(ax.collections)
    2
    """
    _check(model)
    colours = target_colours(model, y, target)
    if prototypes is None:
        prototypes = len(model.prototypes_) < len(model.embedding_)
    ax = _axes(ax)
    view = View(model, colours, components)
    area, alpha = (SAMPLE_AREA, 0.35) if prototypes else (2 * SAMPLE_AREA, 0.7)
    _scatter(ax, view.samples(), area, colours.samples, colours.sample_shapes, alpha=alpha, linewidth=0)
    if prototypes:
        _draw_prototypes(ax, model, view, colours)
    view.finish(ax)
    colours.explain(ax)
    return ax


def plot_prototypes(
    model: BaseReduction,
    ax: Axes | None = None,
    *,
    target: int = 0,
    components: tuple[int, int] | None = None,
    numbers: bool | None = None,
) -> Axes:
    """The prototypes alone: area is weight, colour is target, each with its row of ``model.summary()`` written on it.

    With more than eight classes the shape says the most frequent one.

    Parameters
    ----------
    model, ax, target, components
        As for :func:`plot_embedding`.
    numbers : bool, optional
        Whether to write the numbers; by default for at most 40 prototypes.

    Returns
    -------
    matplotlib axes
    """
    _check(model)
    colours, ax = target_colours(model, None, target), _axes(ax)
    view = View(model, colours, components)
    _draw_prototypes(ax, model, view, colours)
    if numbers if numbers is not None else len(model.prototypes_) <= 40:
        for k in np.flatnonzero(model.prototype_weights_ > 0):
            _write(ax, str(k), view.prototypes()[k], fontsize=6)
    view.finish(ax)
    colours.explain(ax)
    return ax


def plot_history(model: BaseReduction, ax: Axes | None = None) -> Axes:
    """The objective and its terms over the outer iterations, as change since the first, and the CKA on the right.

    Parameters
    ----------
    model : SDR or DistR
        A fitted model.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
        Those of the terms; the CKA's, if the fit had one, are the last axes of the same figure.
    """
    from matplotlib.ticker import MaxNLocator

    _check(model)
    history, ax = model.history_, _axes(ax)
    for name, colour in zip(TERMS, (OKABE_ITO[-1], *OKABE_ITO), strict=False):
        values = history[name].to_numpy()
        if values.any():
            label = f"{name.replace('_', '-')} (ends at {values[-1]:.4g})"
            ax.plot(history["iteration"], values - values[0], ".-", color=colour, label=label)
    handles = ax.get_lines()
    if history["cka"].notna().any():
        right = ax.twinx()
        label = f"CKA, right (ends at {history['cka'].iloc[-1]:.3f})"
        handles += right.plot(history["iteration"], history["cka"], "s--", color=UNKNOWN, markersize=3, label=label)
        right.set_ylabel("CKA")
    ax.set_xlabel("outer iteration")
    ax.set_ylabel("change since iteration 0")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize="small")
    return ax


def plot_coupling(
    model: BaseReduction,
    y: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    target: int = 0,
    n_bins: int = 10,
) -> Axes:
    """What each prototype is made of: a heat map of targets by prototypes, whose columns sum to one.

    Prototypes that carry something are ordered by their largest share and then by weight; continuous targets are cut
    into bins of equal width.

    Parameters
    ----------
    model, ax, target
        As for :func:`plot_embedding`.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Targets of the samples of the fit, None or NaN where unknown. Without them SDR shows what it keeps of its own:
        shares of classes, or each prototype's mean in its bin. DistR needs them.
    sample_weight : array-like of shape (n_samples,), optional
        The weights of the fit, if it had any and `y` is given.
    n_bins : int, default=10
        Number of bins of a continuous target.

    Returns
    -------
    matplotlib axes
        With the heat map as its only image.

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
    _check(model)
    if y is None:
        carried, names, title = prototype_rows(model, target, n_bins)
        carried = np.where(model.prototype_weights_ > 0, carried.T, 0.0)
    else:
        rows, names, title = target_rows(model, y, target, n_bins)
        carried = (model.coupling_.T @ (_weights(sample_weight, len(rows))[:, None] * rows)).T
    used = np.flatnonzero(carried.sum(axis=0) > 0)
    shares = carried[:, used] / carried[:, used].sum(axis=0)
    order = np.lexsort((-model.prototype_weights_[used], shares.argmax(axis=0)))
    ax = _axes(ax)
    image = ax.imshow(
        shares[:, order], aspect="auto", cmap="Blues", vmin=0, vmax=1, origin="lower", interpolation="nearest"
    )
    _label_cells(ax, names, [str(k) for k in used[order]])
    ax.set_xlabel("prototype, ordered by target")
    ax.set_ylabel(title)
    ax.figure.colorbar(image, ax=ax, label="share of the prototype's samples")
    return ax


def plot_calibration(
    predictions: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]], ax: Axes | None = None, *, n_levels: int = 99
) -> Axes:
    """Observed against expected coverage of central intervals, a curve a model, and its area off the ideal diagonal.

    Parameters
    ----------
    predictions : mapping of str to (y, mean, std)
        Name of each model and its Gaussian predictions, as for :func:`distreduce.metrics.calibration_curve`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    n_levels : int, default=99
        Number of levels, of the curve and of the error (MACE) in the legend.

    Returns
    -------
    matplotlib axes
        With the diagonal as first line and the curves after it, in the order of the mapping.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = plot_calibration({"GP": ([0.1, 0.9], [0.0, 1.0], [0.2, 0.3])}, Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['ideal', 'GP (MACE 0.244)']
    """
    if not isinstance(predictions, Mapping) or not predictions:
        raise InvalidInputError("predictions must map the name of at least one model to its (y, mean, std).")
    curves = {name: calibration_curve(*given, n_levels=n_levels) for name, given in predictions.items()}
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], ":", color="#444444", linewidth=1.2, label="ideal")
    for (name, (expected, observed)), colour in zip(curves.items(), class_palette(len(curves)), strict=True):
        error = mean_absolute_calibration_error(*predictions[name], n_levels=n_levels)
        ax.fill_between(expected, expected, observed, color=tuple(colour), alpha=0.12, linewidth=0)
        ax.plot(expected, observed, color=tuple(colour), linewidth=1.6, label=f"{name} (MACE {error:.3f})")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="expected share in the interval", ylabel="observed share in the interval")
    ax.set_aspect("equal")
    ax.text(0.03, 0.97, "under-confident", ha="left", va="top", color="#666666", fontsize="small")
    ax.text(0.97, 0.03, "over-confident", ha="right", va="bottom", color="#666666", fontsize="small")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return ax


class View:
    """Where samples and prototypes go on a plane, for any dimension of the embedding."""

    def __init__(self, model: BaseReduction, colours: Colours, components: tuple[int, int] | None) -> None:
        self.model, self.colours = model, colours
        p = model.embedding_.shape[1]
        self.line = p == 1
        names = [str(name) for name in model.get_feature_names_out()]
        self.axes: Array
        if components is None:
            self.axes, self.labels = (np.eye(p), names) if p <= 2 else self._principal()
        else:
            if len(components) != 2 or not all(0 <= a < p for a in components):
                raise InvalidInputError(f"components={components} must be two dimensions among 0 … {p - 1}.")
            self.axes, self.labels = np.eye(p)[:, list(components)], [names[a] for a in components]

    def _principal(self) -> tuple[Array, list[str]]:
        Z = self.model.embedding_
        _, sizes, rows = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
        share = sizes**2 / (sizes**2).sum()
        return rows[:2].T, [f"principal axis {a + 1} of z ({share[a]:.0%})" for a in (0, 1)]

    def samples(self) -> Array:
        heights = self.colours.sample_values
        if heights is not None and self.colours.prototype_values is not None:  # on a line, unknown y: its prototype's
            heights = np.where(np.isnan(heights), self.colours.prototype_values[self.model.labels_], heights)
        return self._place(self.model.embedding_, heights)

    def prototypes(self) -> Array:
        return self._place(self.model.prototypes_, self.colours.prototype_values)

    def _place(self, Z: Array, heights: Array | None) -> Array:
        if not self.line:
            return np.asarray(Z @ self.axes)
        return np.c_[Z[:, 0], np.zeros(len(Z)) if heights is None else heights]

    def finish(self, ax: Axes) -> None:
        ax.margins(0.08)  # the discs are wider than the points they stand for
        ax.set_xlabel(self.labels[0])
        if not self.line:
            ax.set_ylabel(self.labels[1])
            ax.set_aspect("equal", adjustable="datalim")
        elif self.colours.classes is not None:
            ax.set_yticks(range(len(self.colours.classes)), [str(label) for label in self.colours.classes])
        elif self.colours.prototype_values is not None:
            ax.set_ylabel(self.colours.name)
        else:
            ax.set_yticks([])


def _draw_prototypes(ax: Axes, model: BaseReduction, view: View, colours: Colours) -> None:
    """Marks with area ∝ weight, the heavy ones first so that none hides another; unused prototypes are left out."""
    weights = model.prototype_weights_
    order = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
    places, shapes = view.prototypes(), colours.prototype_shapes
    _scatter(
        ax, places[order], TOTAL_AREA * weights[order], colours.prototypes[order],
        None if shapes is None else shapes[order], alpha=0.9, linewidth=0.8,
    ).set_edgecolor("white")  # fmt: skip
    if colours.classes is not None and len(colours.classes) > len(OKABE_ITO) and not view.line:
        _name_classes(ax, places, order, colours.classes, np.asarray(colours.prototype_values))


def _name_classes(
    ax: Axes, places: Array, order: NDArray[np.intp], classes: NDArray[Any], main: NDArray[np.float64]
) -> None:
    """So many colours cannot all be told apart: the heaviest prototype of each class carries its name."""
    for c, label in enumerate(classes):
        members = order[main[order] == c]
        if len(members):
            _write(ax, str(label), places[members[0]], weight="bold")


def _scatter(ax: Axes, places: Array, area: Any, colours: Array, shapes: Shapes | None, **style: Any) -> Any:
    marks = ax.scatter(places[:, 0], places[:, 1], s=area, c=colours, **style)
    if shapes is not None:
        # One collection whatever the shapes, so that marks keep the order in which none hides another.
        paths = [marker_path(shape) for shape in range(len(SHAPES))]
        marks.set_paths([paths[shape] for shape in shapes])
    return marks


def _weights(sample_weight: ArrayLike | None, n: int) -> Array:
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise InvalidInputError(f"sample_weight must hold {n} numbers; got shape {weights.shape}.")
    return weights


def _label_cells(ax: Axes, rows: list[str], columns: list[str]) -> None:
    """Names beside rows in letters that fit, at most 20 numbers below the columns, and lines between few columns."""
    height = 72 * ax.get_window_extent().height / ax.figure.dpi / len(rows)  # of a row, in points
    size = min(10.0, max(MIN_LETTERS, 0.85 * height))
    step = int(np.ceil(MIN_LETTERS / (0.85 * height)))  # rows so thin that even the smallest letters would touch
    names = [name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…" for name in rows]
    ax.set_yticks(range(0, len(rows), step), names[::step], fontsize=size)
    every = -(-len(columns) // 20)
    ax.set_xticks(range(0, len(columns), every), columns[::every], rotation=90, fontsize="small")
    if len(columns) <= 80:
        ax.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
        ax.grid(which="minor", axis="x", color="white", linewidth=0.6)
        ax.tick_params(which="minor", length=0)


def _write(ax: Axes, text: str, place: Array, **style: Any) -> None:
    """Text in the middle of a disc, with a white halo so that it can be read on any colour."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    ax.annotate(text, tuple(place), ha="center", va="center", path_effects=halo, **style)


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _check(model: object) -> None:
    if not isinstance(model, BaseReduction):
        raise InvalidTypeError(f"model must be a fitted SDR or DistR; got {type(model).__name__}.")
    check_is_fitted(model)

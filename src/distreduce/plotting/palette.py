"""Colours and shapes of samples and prototypes by their targets, for `distreduce.plotting`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.estimators._targets import guess_task
from distreduce.exceptions import InvalidInputError
from distreduce.plotting.markers import SHAPES, Shapes, marker_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe and Ito's palette, told apart with any common colour vision; black last, because it draws the eye.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
# Paul Tol's "muted" and "light", each without its grey and, of nine, without the sand that the other has as yellow.
# Each of the three is safe by itself, and classes of different palettes differ in shape.
TOL_MUTED = ("#332288", "#CC6677", "#117733", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499")
TOL_LIGHT = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
SAFE = (*OKABE_ITO, *TOL_MUTED, *TOL_LIGHT)
COLOUR_MAP = "viridis"  # perceptually uniform and safe for colour-blind readers
UNKNOWN = "#9A9A9A"
MAX_LEGEND = len(SAFE)
LEGEND_ROWS = 12


@dataclass(frozen=True)
class Colours:
    """RGBA of the samples and of the prototypes, the numbers behind them, and what explains them to the reader.

    Shapes are places in `distreduce.plotting.markers.SHAPES`; None if all are discs.
    """

    samples: Array
    prototypes: Array
    sample_values: Array | None = None
    prototype_values: Array | None = None
    classes: NDArray[Any] | None = None
    palette: Array | None = None
    scale: Any = None
    name: str = ""
    sample_shapes: Shapes | None = None
    prototype_shapes: Shapes | None = None

    def explain(self, ax: Axes) -> None:
        """A legend of at most `MAX_LEGEND` classes, or a colour bar."""
        if self.scale is not None:
            ax.figure.colorbar(self.scale, ax=ax, label=self.name, shrink=0.8)
        if self.classes is None or self.palette is None or len(self.classes) > MAX_LEGEND:
            return
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], marker=marker_path(shape), linestyle="", color=tuple(colour), label=str(label))
            for label, colour, shape in zip(self.classes, self.palette, class_shapes(len(self.classes)), strict=True)
        ]
        ax.legend(
            handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, handletextpad=0.1,
            ncols=-(-len(handles) // LEGEND_ROWS),
        )  # fmt: skip


def target_colours(model: BaseReduction, y: ArrayLike | None, target: int) -> Colours:
    from matplotlib.colors import to_rgba

    n, m = model.coupling_.shape
    if y is None and not hasattr(model, "prototype_targets_"):
        return Colours(np.tile(to_rgba(UNKNOWN), (n, 1)), np.tile(to_rgba(OKABE_ITO[0]), (m, 1)))
    classes, values = target_values(model, y, target)
    if hasattr(model, "prototype_targets_"):
        means = model.prototype_targets_ if classes is not None else model.prototype_targets_[:, [target]]
    else:
        means = carried(model, values)
    return _by_class(values, means, classes) if classes is not None else _by_number(model, values, means, target)


def _by_class(values: Array, means: Array, classes: NDArray[Any]) -> Colours:
    from matplotlib.colors import to_rgba

    palette = class_palette(len(classes))
    known = ~np.isnan(values).any(axis=1)
    samples = np.tile(to_rgba(UNKNOWN), (len(values), 1))
    samples[known] = palette[values[known].argmax(axis=1)]
    heights = np.where(known, np.nan_to_num(values).argmax(axis=1), np.nan)
    blend, main = np.clip(means @ palette, 0, 1), means.argmax(axis=1)
    colours = Colours(samples, blend, heights, main.astype(float), classes, palette)
    if len(classes) <= len(OKABE_ITO):
        return colours
    shapes = class_shapes(len(classes))
    own = np.where(known, shapes[np.nan_to_num(heights).astype(np.intp)], 0)
    return replace(colours, sample_shapes=own, prototype_shapes=shapes[main])


def _by_number(model: BaseReduction, values: Array, means: Array, target: int) -> Colours:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize, to_rgba

    numbers, means = values[:, 0], means[:, 0]
    known = numbers if np.isfinite(numbers).any() else means
    scale = ScalarMappable(Normalize(np.nanmin(known), np.nanmax(known)), colormaps[COLOUR_MAP])
    samples = np.where(np.isnan(numbers)[:, None], to_rgba(UNKNOWN), scale.to_rgba(np.nan_to_num(numbers)))
    name = model.target_names_[target].removeprefix("mean ") if hasattr(model, "target_names_") else "y"
    return Colours(samples, scale.to_rgba(means), numbers, means, scale=scale, name=name)


def class_palette(n_classes: int) -> Array:
    """RGBA (n_classes, 4): Okabe and Ito's up to 8 classes, with two of Tol's up to 24, then a circle of hues."""
    from matplotlib.colors import hsv_to_rgb, to_rgba_array

    if n_classes <= len(SAFE):
        return np.asarray(to_rgba_array(SAFE))[:n_classes]
    turn = np.arange(n_classes) / n_classes
    value = np.where(np.arange(n_classes) % 2, 0.6, 0.9)  # neighbours on the circle differ in lightness as well
    return np.c_[hsv_to_rgb(np.c_[turn, np.full(n_classes, 0.8), value]), np.ones(n_classes)]


def class_shapes(n_classes: int) -> Shapes:
    """The shape of each class: one a palette, or one after the other where neighbours on the circle look alike."""
    places = np.arange(n_classes)
    return places // len(OKABE_ITO) if n_classes <= len(SAFE) else places % len(SHAPES)


def target_values(model: BaseReduction, y: ArrayLike | None, target: int) -> tuple[NDArray[Any] | None, Array]:
    """The classes (None for numbers) and y as one-hot rows or one column, NaN where it is not known."""
    n = len(model.embedding_)
    table = np.full((n, 1), np.nan) if y is None else np.asarray(y)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != n:
        raise InvalidInputError(f"y must have one row for each of the {n} samples of the fit; got shape {table.shape}.")
    task = getattr(model, "task_", None) or guess_task(table[~pd.isna(table).any(axis=1)])
    if task == "classification":
        return _class_rows(getattr(model, "classes_", None), table)
    columns = model.prototype_targets_.shape[1] if hasattr(model, "prototype_targets_") else table.shape[1]
    if not 0 <= target < columns or (y is not None and target >= table.shape[1]):
        raise InvalidInputError(f"target={target} is no column of y, which has {min(columns, table.shape[1])}.")
    try:
        return None, table[:, [target if y is not None else 0]].astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"y must hold numbers, as the fit's targets did ({error}).") from error


def _class_rows(classes: NDArray[Any] | None, table: NDArray[Any]) -> tuple[NDArray[Any], Array]:
    column = pd.Series(table[:, 0])
    if classes is None:
        classes = np.unique(column.dropna().to_numpy())
    place = pd.Index(classes).get_indexer(pd.Index(column))
    known = column.notna().to_numpy()
    if (place[known] < 0).any():
        stranger = column[known].to_numpy()[place[known] < 0][0]
        raise InvalidInputError(f"y holds the label {stranger!r}, which the fit did not have; its classes: {classes}.")
    rows = np.full((len(table), len(classes)), np.nan)
    rows[known] = np.eye(len(classes))[place[known]]
    return classes, rows


def carried(model: BaseReduction, values: Array) -> Array:
    """Mean of the samples' values on each prototype, of all samples' where it carries none."""
    known = ~np.isnan(values).any(axis=1)
    T = model.coupling_[np.flatnonzero(known)]
    mass = np.asarray(T.sum(axis=0)).ravel()
    means = np.asarray(T.T @ values[known]) / np.where(mass > 0, mass, 1.0)[:, None]
    return np.where(mass[:, None] > 0, means, values[known].mean(axis=0))


def target_rows(model: BaseReduction, y: ArrayLike, target: int, n_bins: int) -> tuple[Array, list[str], str]:
    """y as rows of shares of classes or bins (zero where unknown), with the names of these and of the axis."""
    classes, values = target_values(model, y, target)
    if np.isnan(values).all():
        raise InvalidInputError("y holds no known target (all are None or NaN): there is nothing to draw.")
    if classes is not None:
        return np.nan_to_num(values), [str(label) for label in classes], "class"
    return _binned(model, values[:, 0], target, n_bins)


def prototype_rows(model: BaseReduction, target: int, n_bins: int) -> tuple[Array, list[str], str]:
    """What prototypes keep of their targets, in the form of :func:`target_rows`: class shares, or means in bins."""
    if not hasattr(model, "prototype_targets_"):
        raise InvalidInputError(f"{type(model).__name__} has no targets of its own; give those of the samples as y.")
    if hasattr(model, "classes_"):
        return model.prototype_targets_, [str(label) for label in model.classes_], "class"
    target_values(model, None, target)  # checks the number of the column
    return _binned(model, model.prototype_targets_[:, target], target, n_bins)


def _binned(model: BaseReduction, numbers: Array, target: int, n_bins: int) -> tuple[Array, list[str], str]:
    """One-hot rows of bins of equal width, zero where a number is NaN."""
    if n_bins < 1:
        raise InvalidInputError(f"n_bins must be at least 1; got {n_bins}.")
    edges = np.linspace(np.nanmin(numbers), np.nanmax(numbers), n_bins + 1)
    rows = np.eye(n_bins)[np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, n_bins - 1)]
    rows[np.isnan(numbers)] = 0.0
    title = model.target_names_[target].removeprefix("mean ") if hasattr(model, "target_names_") else "y"
    return rows, [f"{low:.3g} to {high:.3g}" for low, high in zip(edges[:-1], edges[1:], strict=True)], title

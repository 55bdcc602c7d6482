"""Colours and shapes of samples and prototypes by their targets, the same in plots and on the page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distreduce._utils.text import number_text
from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.plotting.axes import draw_legend
from distreduce.plotting.targets import (
    average_on_prototypes,
    prototype_means,
    read_shown_targets,
    scale_edges,
    target_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

Shapes = NDArray[np.intp]


def _regular(corners: int, turn: float, inner: float = 1.0) -> Array:
    """Return corners on a circle, the first at `turn` quarters; every second one at radius `inner` makes a star."""
    angle = np.pi / 2 * turn + 2 * np.pi * np.arange(corners) / corners
    radius = np.where(np.arange(corners) % 2, inner, 1.0)
    return radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]


def _cross(arm: float) -> Array:
    quarter = np.array([[1.0, -arm], [1.0, arm], [arm, arm]])
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    return np.concatenate([quarter @ np.linalg.matrix_power(turn, k) for k in range(4)])


def _scale_to_disc(corners: Array) -> Array:
    """Scale to the area of the unit disc, because the area of a mark shows a weight whatever its shape."""
    x, y = corners.T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    return np.asarray(corners * np.sqrt(np.pi / area))


# Corners with y upwards; None is the disc.
SHAPES: tuple[Array | None, ...] = (
    None,
    _scale_to_disc(_regular(4, 0.5)),
    _scale_to_disc(_regular(3, 1.0)),
    _scale_to_disc(_regular(4, 1.0) * [0.75, 1.0]),
    _scale_to_disc(_cross(0.36)),
    _scale_to_disc(_regular(10, 1.0, 0.45)),
)


def marker_path(shape: int, share: float = 1.0) -> Path:
    """Return a shape in the units of matplotlib, where the disc has radius one half.

    Below a share of `PURE` it is a rim and a core, whose area is that share of what the rim encloses. The colour stays
    that of the class: a paler one may look like another class.
    """
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    # A closed path repeats its first corner; matplotlib ignores the coordinates of the last.
    corners = SHAPES[shape]
    whole = Path.unit_circle() if corners is None else Path(np.r_[corners, corners[:1]], closed=True)
    hole, core = INSIDE / 2, INSIDE / 2 * np.sqrt(share)
    # Mirrored, the hole turns the other way than what is around it, which leaves it empty.
    sizes = [(0.5, 0.5)] if share >= PURE else [(0.5, 0.5), (-hole, hole), (core, core)]
    return Path.make_compound_path(*(Affine2D().scale(*size).transform_path(whole) for size in sizes))


# Okabe and Ito's palette, which all common kinds of colour vision can tell apart; black last, as it draws the eye.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
# Paul Tol's "muted" and "light" without their greys and without the sand that resembles the other's yellow. Each of the
# three palettes is safe by itself, and classes of different palettes differ in shape.
TOL_MUTED = ("#332288", "#CC6677", "#117733", "#88CCEE", "#882255", "#44AA99", "#999933", "#AA4499")
TOL_LIGHT = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
SAFE = (*OKABE_ITO, *TOL_MUTED, *TOL_LIGHT)
COLOUR_MAP = "viridis"  # perceptually uniform and safe for colour-blind readers
PURE, INSIDE = 0.95, 0.8  # share of one class from which a mark is solid; the radius inside the rim of the others
UNKNOWN = "#9A9A9A"
MAX_LEGEND = len(SAFE)
LEGEND_ROWS = 12


@dataclass(frozen=True)
class Colours:
    """RGBA colours of the samples and prototypes, the values behind them, and their legend or colour bar.

    Shapes index `distreduce.plotting.palette.SHAPES`; None if all marks are discs.
    """

    samples: Array
    prototypes: Array
    sample_values: Array | None = None
    prototype_values: Array | None = None
    classes: NDArray[Any] | None = None
    palette: Array | None = None
    scale: Any = None
    edges: list[float] | tuple[()] = ()  # numbers between which the colours of the scale are evenly spaced
    name: str = ""
    sample_shapes: Shapes | None = None
    prototype_shapes: Shapes | None = None
    main_shares: Array | None = None

    def describe(self, prototype: int) -> str:
        """Return the most frequent class of a prototype, or its mean target, behind a colon; nothing without either."""
        if self.prototype_values is None:
            return ""
        value = self.prototype_values[prototype]
        return f": {number_text(value, 3) if self.classes is None else self.classes[int(value)]}"

    def draw_key(self, ax: Axes) -> None:
        """Draw a legend of at most `MAX_LEGEND` classes, or a colour bar."""
        if self.scale is not None:
            bar = ax.figure.colorbar(self.scale, ax=ax, label=self.name, shrink=0.8)
            if len(self.edges) > 2:  # of quarters, matplotlib's own ticks would lie on each other
                bar.set_ticks(list(self.edges), labels=[number_text(edge, 3) for edge in self.edges])
                bar.set_label(f"{self.name} (colours by quarters of the values)")
            bar.ax.yaxis.label.set_parse_math(False)  # a column may be called "$"
        if self.classes is None or self.palette is None or len(self.classes) > MAX_LEGEND:
            return
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], marker=marker_path(shape), linestyle="", color=tuple(colour), label=str(label))
            for label, colour, shape in zip(self.classes, self.palette, class_shapes(len(self.classes)), strict=True)
        ]
        columns = -(-len(handles) // LEGEND_ROWS)
        draw_legend(ax, handles=handles, loc="center left", bbox_to_anchor=(1, 0.5), handletextpad=0.1, ncols=columns)


def colour_by_target(model: BaseReduction, y: ArrayLike | None, target: int, places: str = "left_out") -> Colours:
    """Colour samples by y and prototypes by their class shares or means; one colour each if there is no target.

    `places` says whose means: of the left-out samples near a prototype, or the fit's own.
    """
    from matplotlib.colors import to_rgba

    n, m = model.coupling_.shape
    if y is None and not hasattr(model, "prototype_targets_"):
        return Colours(np.tile(to_rgba(UNKNOWN), (n, 1)), np.tile(to_rgba(OKABE_ITO[0]), (m, 1)))
    classes, values = read_shown_targets(model, y, target)
    # Prototypes: the model's own means if it keeps them, else those of the given y.
    if hasattr(model, "prototype_targets_"):
        means = prototype_means(model, places)
        means = means if classes is not None else means[:, [target]]
    else:
        means = average_on_prototypes(model, values)
    if classes is not None:
        return _colour_classes(values, means, classes)
    return _colour_numbers(values[:, 0], means[:, 0], target_name(model, target))


def _colour_classes(values: Array, means: Array, classes: NDArray[Any]) -> Colours:
    from matplotlib.colors import to_rgba

    palette = class_palette(len(classes))
    # Samples: the colour of their class, grey if it is unknown.
    known = ~np.isnan(values).any(axis=1)
    samples = np.tile(to_rgba(UNKNOWN), (len(values), 1))
    samples[known] = palette[values[known].argmax(axis=1)]
    codes = np.where(known, np.nan_to_num(values).argmax(axis=1), np.nan)
    main = means.argmax(axis=1)
    found = Colours(samples, palette[main], codes, main.astype(float), classes, palette, main_shares=means.max(axis=1))
    # With more classes than safe colours, the shape tells apart what the colour does not.
    if len(classes) <= len(OKABE_ITO):
        return found
    shapes = class_shapes(len(classes))
    own = np.where(known, shapes[np.nan_to_num(codes).astype(np.intp)], 0)
    return replace(found, sample_shapes=own, prototype_shapes=shapes[main])


def _colour_numbers(numbers: Array, means: Array, name: str) -> Colours:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import FuncNorm, Normalize, to_rgba

    # The scale spans the samples, whose range is wider than that of means over them.
    known = numbers if np.isfinite(numbers).any() else means
    edges = scale_edges(known[np.isfinite(known)])
    norm, parts = Normalize(edges[0], edges[-1], clip=True), np.linspace(0, 1, len(edges))
    if len(edges) > 2:
        spread = partial(np.interp, xp=edges, fp=parts), partial(np.interp, xp=parts, fp=edges)
        norm = FuncNorm(spread, edges[0], edges[-1], clip=True)
    scale = ScalarMappable(norm, colormaps[COLOUR_MAP])
    samples = np.where(np.isnan(numbers)[:, None], to_rgba(UNKNOWN), scale.to_rgba(np.nan_to_num(numbers)))
    return Colours(samples, scale.to_rgba(means), numbers, means, scale=scale, edges=edges, name=name)


def class_palette(n_classes: int) -> Array:
    """Return RGBA colours (n_classes, 4): Okabe and Ito's up to 8 classes, Tol's up to 24, then a circle of hues."""
    from matplotlib.colors import hsv_to_rgb, to_rgba_array

    if n_classes <= len(SAFE):
        return np.asarray(to_rgba_array(SAFE))[:n_classes]
    turn = np.arange(n_classes) / n_classes
    value = np.where(np.arange(n_classes) % 2, 0.6, 0.9)  # neighbours on the circle differ in lightness as well
    return np.c_[hsv_to_rgb(np.c_[turn, np.full(n_classes, 0.8), value]), np.ones(n_classes)]


def class_shapes(n_classes: int) -> Shapes:
    """Return the shape of each class: one per palette, or alternating where neighbours on the hue circle look alike."""
    places = np.arange(n_classes)
    return places // len(OKABE_ITO) if n_classes <= len(SAFE) else places % len(SHAPES)

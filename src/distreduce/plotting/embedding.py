"""Scatter plots of the embedding: samples and prototypes, or the prototypes alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from distreduce._utils.numerics import nearest
from distreduce._utils.typing import Array, Mask
from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidInputError
from distreduce.plotting.axes import check_reduction, draw_svg, get_axes
from distreduce.plotting.palette import OKABE_ITO, PURE, Colours, Shapes, colour_by_target, marker_path
from distreduce.plotting.targets import choose_places, sample_places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# All prototypes share this area (points²): 60 equal ones get 100 each, a disc of 11 points.
TOTAL_AREA = 6000.0
LEAST_AREA, SAMPLE_AREA = 16.0, 9.0
CROWDED = 0.5  # largest radius of a typical mark, relative to the distance to the next: more would hide the samples
LEAST_SHRINK = 0.6  # of the radius: smaller marks could not be told from samples
MAX_DOTS = 2000  # in a notebook, which keeps every dot; more are drawn as one image
MAX_NUMBERED = 40  # prototypes
LETTER = np.array([6.5, 12.0])  # width and height in points, at matplotlib's default size
NUMBER = 6.0  # points


def plot_embedding(
    model: BaseReduction,
    y: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    places: str = "left_out",
    prototypes: bool | None = None,
    target: int = 0,
    components: tuple[int, int] | None = None,
) -> Axes:
    """Draw the samples as small dots and the prototypes over them: area is weight, colour is target.

    Samples lie where they would had they not been in the fit, and a prototype has the mean target of the samples that
    lie near it there: what you see holds for new samples. Dashed prototypes are dubious (``prototype_evidence_``).
    A prototype with samples of several classes has the colour of the most frequent. If less than 95 % are of that
    class, it is a rim with a core: the smaller the core, the smaller the share of the class.
    With more than eight classes, markers differ in shape as well as colour, and a prototype has the shape of its most
    frequent class; no two of 24 classes share both. An embedding with one dimension is drawn against the target, one
    with more than two in the plane of its first two principal axes.

    Parameters
    ----------
    model : SDR or DistR
        A fitted model.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        Targets of the samples of the fit, None or NaN where unknown. Without them the samples are grey. DistR keeps no
        targets, so its prototypes are coloured by the mean of these.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    places : {"left_out", "fitted"}, default="left_out"
        "fitted" draws the samples and the targets of the prototypes as the fit, which has seen y, left them. A model
        without left-out places, such as DistR, is always drawn as fitted.
    prototypes : bool, optional
        Whether to draw the prototypes; by default if there are fewer prototypes than samples.
    target : int, default=0
        Which column of a continuous target with several columns to colour by.
    components : (int, int), optional
        Two dimensions of the embedding to draw instead of the principal axes.

    Returns
    -------
    matplotlib axes
        The samples are the first collection; the prototypes, if drawn, the last.

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
    check_reduction(model)
    colours = colour_by_target(model, y, target, places)
    view = View(model, colours, components, places)
    if prototypes is None:
        prototypes = len(model.prototypes_) < len(model.embedding_)
    ax = get_axes(ax)
    # Without prototypes over them, the samples may be larger and stronger.
    area, alpha = (SAMPLE_AREA, 0.45) if prototypes else (2 * SAMPLE_AREA, 0.7)
    _scatter(ax, view.samples(), area, colours.samples, colours.sample_shapes, alpha=alpha, linewidth=0)
    if prototypes:
        _draw_prototypes(ax, view)
    view.label_axes(ax)
    colours.draw_key(ax)
    return ax


def embedding_svg(model: BaseReduction) -> str:
    """Return :func:`plot_embedding` as an SVG element, for notebooks."""

    def draw(figure: Any) -> None:
        ax = plot_embedding(model, ax=figure.subplots(), prototypes=True)
        ax.collections[0].set_rasterized(len(model.embedding_) > MAX_DOTS)

    # Ids of one drawing must not meet those of another in the same notebook.
    svg = draw_svg(draw, (6.0, 4.4), name=f"map-{zlib.crc32(model.embedding_.tobytes()):08x}")
    return svg[svg.index("<svg") :]


def plot_prototypes(
    model: BaseReduction,
    ax: Axes | None = None,
    *,
    places: str = "left_out",
    target: int = 0,
    components: tuple[int, int] | None = None,
    numbers: bool | None = None,
) -> Axes:
    """Draw the prototypes alone, each with its number in ``model.summary()`` and its class or mean target.

    Area is weight, colour is target, and dashed prototypes are dubious. With more than eight classes, the shape of a
    marker is that of the most frequent class. By default the `numbers` are written if there are at most 40 prototypes,
    the heaviest first and none over another. The other parameters are those of :func:`plot_embedding`; with
    ``places="fitted"`` the targets are what the fit believes.
    """
    check_reduction(model)
    colours = colour_by_target(model, None, target, places)
    view, ax = View(model, colours, components, places), get_axes(ax)
    _draw_prototypes(ax, view, over_samples=False)
    # Those that are drawn, the heaviest first.
    drawn = np.argsort(-model.prototype_weights_, kind="stable")[: np.count_nonzero(model.prototype_weights_)]
    if numbers if numbers is not None else len(drawn) <= MAX_NUMBERED:
        texts = [f"{k}{colours.describe(k)}" for k in drawn]
        _write_apart(ax, view, texts, view.prototypes()[drawn], fontsize=NUMBER)
        what = "most frequent class" if colours.classes is not None else f"mean {colours.name}"
        what = "" if colours.prototype_values is None else f": {what}"
        ax.set_title(f"prototypes by their numbers in summary(){what}", fontsize="small", parse_math=False)
    view.label_axes(ax, "targets")
    colours.draw_key(ax)
    return ax


def _draw_prototypes(ax: Axes, view: View, *, over_samples: bool = True) -> None:
    """Draw the prototypes in use, heaviest first so that none hides another; over samples, they leave room."""
    weights, colours = view.model.prototype_weights_, view.colours
    # Prototypes without weight come last in the order and are cut off.
    order = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
    places, dubious = view.prototypes(), view.find_dubious()[order]
    # A dubious mark stays whole: its dashes around a gap as well could not be read.
    shares = np.ones(len(order)) if colours.main_shares is None else np.where(dubious, 1.0, colours.main_shares[order])
    shapes = np.zeros(len(order), np.intp) if colours.prototype_shapes is None else colours.prototype_shapes[order]
    areas = _mark_areas(ax, view, places[order], weights[order]) if over_samples else TOTAL_AREA * weights[order]
    # Thin edges where they go around rim and core.
    edges = np.where(shares < PURE, 0.3, 0.8)
    marks = _scatter(ax, places[order], areas, colours.prototypes[order], shapes, shares, alpha=0.9, linewidth=edges)
    marks.set_edgecolor(np.where(dubious, "black", "white"))
    marks.set_linestyle(["--" if each else "-" for each in dubious])
    if colours.classes is None or len(colours.classes) <= len(OKABE_ITO) or view.line:
        return
    # More than eight colours are hard to tell apart: write the name of each class on its heaviest prototype.
    main = np.asarray(colours.prototype_values, dtype=np.intp)[order]
    heaviest = np.sort(np.unique(main, return_index=True)[1])
    _write_apart(ax, view, [str(colours.classes[c]) for c in main[heaviest]], places[order[heaviest]])


def _mark_areas(ax: Axes, view: View, places: Array, weights: Array) -> Array:
    """Return the areas of marks (points²): their shares of `TOTAL_AREA`, or of less where marks crowd."""
    areas = TOTAL_AREA * weights
    if len(places) > 1:
        gaps = nearest(places * _points_per_unit(ax, view), places * _points_per_unit(ax, view), 2)[0][:, 1]
        radius = np.sqrt(np.median(areas) / np.pi)
        areas = areas * np.clip(CROWDED * float(np.median(gaps)) / radius, LEAST_SHRINK, 1.0) ** 2
    return np.maximum(areas, LEAST_AREA)


def _points_per_unit(ax: Axes, view: View) -> Array:
    """Return how many points a unit of each axis takes: an estimate, as limits may still change."""
    spans = 1.2 * np.ptp(np.concatenate([view.samples(), view.prototypes()]), axis=0)  # with the margins
    points = 72 / ax.figure.dpi * np.asarray(ax.bbox.size) / np.where(spans > 0, spans, 1.0)
    return points if view.line else np.full(2, points.min())


def _write_apart(ax: Axes, view: View, names: list[str], places: Array, **style: Any) -> None:
    """Write names, but none over an earlier one; in bold, or in the given `style`."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]  # keeps text readable on any colour
    look: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False, **(style or {"weight": "bold"})}
    letter = LETTER * style.get("fontsize", 10.0) / 10.0
    points = _points_per_unit(ax, view)
    written: list[tuple[str, Array]] = []
    for name, place in zip(names, places, strict=True):
        room = [letter * [(len(name) + len(other)) / 2, 1.0] for other, _ in written]
        if all((points * np.abs(place - at) > size).any() for (_, at), size in zip(written, room, strict=True)):
            written.append((name, place))
            ax.annotate(name, tuple(place), path_effects=halo, **look)


def _scatter(
    ax: Axes, places: Array, area: Any, colours: Array, shapes: Shapes | None, shares: Array | None = None, **style: Any
) -> Any:
    marks = ax.scatter(places[:, 0], places[:, 1], s=area, c=colours, **style)
    if shapes is not None:
        # One collection for all shapes keeps the order in which no mark hides another.
        own = zip(shapes, np.ones(len(shapes)) if shares is None else shares, strict=True)
        path = cache(marker_path)
        marks.set_paths([path(int(shape), float(share)) for shape, share in own])
    return marks


class View:
    """Project samples and prototypes on a plane.

    Two dimensions are drawn as they are, one dimension against the target, more than two on the first two principal
    axes of the samples, or on the two given `components`. `places` are those of the samples, left out or fitted.
    """

    def __init__(
        self, model: BaseReduction, colours: Colours, components: Sequence[int] | None = None, places: str = "left_out"
    ) -> None:
        self.model, self.colours, self.places = model, colours, choose_places(model, places)
        p = model.embedding_.shape[1]
        self.line = p == 1
        # The plane: the embedding itself, its principal axes, or two of its dimensions.
        names = [str(name) for name in model.get_feature_names_out()]
        self.axes: Array
        if components is None:
            self.axes, self.labels = (np.eye(p), names) if p <= 2 else self._principal_axes()
        else:
            if len(components) != 2 or not all(0 <= a < p for a in components):
                raise InvalidInputError(f"components={components} must be two dimensions among 0 … {p - 1}.")
            self.axes, self.labels = np.eye(p)[:, list(components)], [names[a] for a in components]

    def _principal_axes(self) -> tuple[Array, list[str]]:
        Z = sample_places(self.model, self.places)
        _, sizes, rows = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
        share = sizes**2 / (sizes**2).sum()  # of the variance
        return rows[:2].T, [f"principal axis {a + 1} of z ({share[a]:.0%})" for a in (0, 1)]

    def samples(self, places: str | None = None) -> Array:
        """Return the place of each sample; on a line, an unknown y is replaced by that of the sample's prototype."""
        heights = self.colours.sample_values
        if heights is not None and self.colours.prototype_values is not None:
            heights = np.where(np.isnan(heights), self.colours.prototype_values[self.model.labels_], heights)
        return self._project(sample_places(self.model, places or self.places), heights)

    def prototypes(self, Z: Array | None = None) -> Array:
        """Return the place of each prototype; `Z` is where it lies in the embedding, if not at its own place."""
        return self._project(self.model.prototypes_ if Z is None else Z, self.colours.prototype_values)

    def find_dubious(self) -> Mask:
        """Return which prototypes are flagged as dubious; none if the view is that of the fit."""
        flagged = self.places == "left_out" and hasattr(self.model, "prototype_evidence_")
        m = len(self.model.prototypes_)
        return self.model.prototype_evidence_["dubious"].to_numpy(dtype=bool) if flagged else np.zeros(m, dtype=bool)

    def _project(self, Z: Array, heights: Array | None) -> Array:
        if not self.line:
            return np.asarray(Z @ self.axes)
        return np.c_[Z[:, 0], np.zeros(len(Z)) if heights is None else heights]

    def label_axes(self, ax: Axes, shown: str = "places") -> None:
        """Set margins, labels, aspect and, for classes on a line, their names as ticks; say whose `shown` these are."""
        ax.margins(0.08)  # the discs are wider than the points they stand for
        # Only a fit that has seen targets has to say it.
        note = f" ({self.places.replace('_', '-')} {shown})" if hasattr(self.model, "prototype_targets_") else ""
        ax.set_xlabel(self.labels[0] + note)
        if not self.line:
            ax.set_ylabel(self.labels[1])
            ax.set_aspect("equal", adjustable="datalim")  # distances mean the same in all directions
        elif self.colours.classes is not None:
            names = [str(label) for label in self.colours.classes]
            ax.set_yticks(range(len(names)), names, parse_math=False)
        elif self.colours.prototype_values is not None:
            ax.set_ylabel(self.colours.name, parse_math=False)
        else:
            ax.set_yticks([])

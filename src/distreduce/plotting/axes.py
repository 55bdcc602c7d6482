"""What plots share: a check of the model, axes, a legend, and SVG text for pages (the same bytes every time)."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from distreduce.estimators._base import BaseReduction
from distreduce.exceptions import InvalidTypeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def check_reduction(model: object) -> None:
    """Raise InvalidTypeError or NotFittedError unless `model` is a fitted SDR or DistR."""
    if not isinstance(model, BaseReduction):
        raise InvalidTypeError(f"model must be a fitted SDR or DistR; got {type(model).__name__}.")
    check_is_fitted(model)


def get_axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # only here: pyplot chooses a backend and may open windows

    return plt.subplots(layout="constrained")[1]


def draw_legend(ax: Axes, **options: Any) -> None:
    """Draw a legend without a frame whose names are not read as mathematics: a class may be called "$5-$10"."""
    for text in ax.legend(frameon=False, **options).get_texts():
        text.set_parse_math(False)


STYLE: dict[Any, Any] = {
    "svg.hashsalt": "distreduce",
    "svg.fonttype": "none",  # text stays text: small, searchable, and in the reader's own fonts
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "figure.constrained_layout.use": True,
}


def draw_svg(
    draw: Callable[[Figure], object],
    size: tuple[float, float],
    *,
    name: str,
    style: Mapping[Any, Any] | None = None,
    titles: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the SVG file of a figure of `size` inches that `draw` fills.

    `name` is the prefix of all ids, so that several drawings can share a page. `style` adds to `STYLE`; matplotlib's
    global settings stay as they are. `titles` has texts that the markers of a line (its gid) show under the pointer.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, **(style or {})}):
        figure = Figure(figsize=size)
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = buffer.getvalue()
    for gid, texts in (titles or {}).items():
        svg = _add_titles(svg, gid, texts)
    prefix = clean_name(name)  # of every id, and of every reference to one
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{prefix}-\2"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)


def clean_name(name: str) -> str:
    """Return `name` as it can stand in file names and ids."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)


def _add_titles(svg: str, gid: str, texts: Sequence[str]) -> str:
    """Give the markers of a group their titles, and the group the style that all its markers repeat."""
    head, _, rest = svg.partition(f'<g id="{gid}">')
    titles, styles = iter(texts), re.findall(r'<use [^>]*style="([^"]*)"', rest)[:1]

    def with_title(use: re.Match[str]) -> str:
        return f"{use[1]}><title>{html.escape(next(titles))}</title></use>"

    marks = re.sub(r'(<use [^>]*?)(?: style="[^"]*")?/>', with_title, rest, count=len(texts))
    return f'{head}<g id="{gid}" style="{"".join(styles)}">{marks}'

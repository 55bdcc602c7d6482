"""Plots as SVG text for pages: the same bytes from the same numbers, and text that stays text."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    global settings stay as they are. `titles` has, for the gid of a line drawn with markers, the text that each marker
    shows under the pointer.
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
    return _prefix_ids(clean_name(name), svg)


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


def _prefix_ids(name: str, svg: str) -> str:
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{name}-\2"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)

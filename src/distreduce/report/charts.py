"""The charts of `distreduce.plotting` in the colours of the page, so that they follow light, dark and print."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from distreduce.plotting.axes import draw_svg
from distreduce.plotting.calibration import IDEAL
from distreduce.plotting.palette import OKABE_ITO
from distreduce.report.renderer import inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (5.0, 3.8)  # inches, of 72 pixels each
STYLE = {
    "font.size": 12.0, "figure.facecolor": "none", "axes.facecolor": "none", "axes.edgecolor": "#dde2e7",
    "grid.color": "#dde2e7", "grid.alpha": 1, "lines.linewidth": 2.0, "lines.markersize": 7.0,
    "xtick.major.size": 0, "ytick.major.size": 0, "xtick.major.pad": 7, "ytick.major.pad": 7,
}  # fmt: skip
# Colours of matplotlib, and the properties of the style sheet that take their place.
PROPERTIES = {colour.lower(): f"var(--c{place})" for place, colour in enumerate(OKABE_ITO[:-1])}
PROPERTIES |= {OKABE_ITO[-1]: "var(--total)", str(IDEAL["color"]): "var(--soft)"}
PROPERTIES |= {"#dde2e7": "var(--line)", "#d3d8de": "var(--faint)", "#ffffff": "var(--card)"}
MAX_CURVES = len(OKABE_ITO) - 1
LOOKS: list[dict[str, Any]] = [{"color": colour, "clip_on": False} for colour in OKABE_ITO[:MAX_CURVES]]


class Figure(NamedTuple):
    """A chart, its title and caption, and the names of its curves with their colours."""

    title: str
    drawing: Markup
    caption: str
    key: list[tuple[str, str]]


def make_figure(title: str, caption: str, draw: Callable[[Axes], object], dot_titles: Sequence[str] = ()) -> Figure:
    """Draw a chart; `dot_titles` are what the markers of the line with the gid "dots" show under the pointer."""
    from matplotlib.colors import to_hex

    curves: list[tuple[str, str]] = []

    def fill(figure: Any) -> None:
        ax = figure.subplots()
        draw(ax)
        named = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
        curves.extend((str(line.get_label()), PROPERTIES[to_hex(line.get_color())]) for line in named)

    name = f"c{zlib.crc32(title.encode()):x}"  # short, because every dot repeats it
    svg = draw_svg(fill, SIZE, name=name, style=STYLE, titles={"dots": dot_titles} if dot_titles else None)
    # Fixed colours to properties of the style sheet, which light, dark and print set.
    for colour, variable in PROPERTIES.items():
        svg = svg.replace(f": {colour}", f": {variable}")
    # A hundredth of a pixel is precise enough, and halves the size of a drawing with many dots.
    svg = re.sub(r' (d|x|y)="[^"]*"', lambda part: re.sub(r"(\.\d\d)\d+", r"\1", part[0]), svg)
    key = [curve for curve in curves if curve[0] != IDEAL["label"]]  # the caption explains the dotted line
    return Figure(title, inline_svg(svg, title), caption, key if len(key) > 1 else [])

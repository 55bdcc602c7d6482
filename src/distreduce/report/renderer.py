"""The renderer of HTML pages: one file that runs no foreign script and asks the network for nothing.

A page is a template that extends ``base.html.j2``. Its styles and scripts stand inside it. The content security policy
forbids everything else, and every text is escaped unless it is marked as markup. Charts of `distreduce.plotting` get
the colours of the page, so that they follow light, dark and print.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from distreduce.plotting.axes import draw_svg
from distreduce.plotting.calibration import IDEAL
from distreduce.plotting.palette import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = "distreduce.report"


def render_page(
    template: str,
    context: Mapping[str, Any],
    *,
    package: str,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    filters: Mapping[str, Callable[..., Any]] | None = None,
) -> str:
    """Fill a template of `package` that extends ``base.html.j2``, and return the page.

    `context` has the variables of the template, of which ``title`` is the title of the page. `styles` (after
    ``base.css``) and `scripts` (joined into one) are files of `package`; `filters` join those of this module.
    """

    def load(name: str) -> str | None:
        own = files(package).joinpath(name)  # a package may replace our files by its own
        return (own if own.is_file() else files(HERE).joinpath(name)).read_text("utf-8")

    # StrictUndefined: a misspelt variable is an error, not a gap in the page.
    environment = Environment(
        loader=FunctionLoader(load), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"unbroken": unbroken, "inline_svg": inline_svg, **(filters or {})}
    style = "\n".join(str(load(name)) for name in ("base.css", *styles))
    script = "\n".join(str(load(name)) for name in scripts)
    return environment.get_template(template).render(
        context,
        style=Markup(style),  # noqa: S704  # our own files
        script=Markup(script),  # noqa: S704  # our own files
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )


def as_json(document: Any) -> Markup:
    """Return JSON for a script element, which no string in it can end; equal documents give equal text."""
    return htmlsafe_json_dumps(document, allow_nan=False, separators=(",", ":"))


def inline_svg(svg: str, label: str = "") -> Markup:
    """Return a drawing of matplotlib without its XML prolog, with a label for those who cannot see it."""
    drawing = Markup(svg[svg.index("<svg") + len("<svg") :])  # noqa: S704  # matplotlib escapes the texts
    return Markup('<svg class="chart" role="img" aria-label="{}"').format(label) + drawing


def unbroken(text: str) -> Markup:
    """Return escaped text that no line breaks within an option of the command line, such as --no-header."""
    marked = re.sub(r"(?<![\w-])--[a-z][a-z-]*", r'<span class="option">\g<0></span>', str(escape(text)))
    return Markup(marked)  # noqa: S704  # escaped above


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

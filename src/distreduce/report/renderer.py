"""The renderer of HTML pages: one file that runs no foreign script and asks the network for nothing.

A page is a template that extends ``base.html.j2``. Its styles and scripts stand inside it. The content security policy
forbids everything else, and every text is escaped unless it is marked as markup.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

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
    environment.filters |= {"prose": prose, "unbroken": unbroken, "inline_svg": inline_svg, **(filters or {})}
    style = "\n".join(str(load(name)) for name in ("base.css", *styles))
    script = "\n".join(str(load(name)) for name in scripts)
    return environment.get_template(template).render(
        context,
        style=Markup(style),  # noqa: S704  # our own files
        script=Markup(script),  # noqa: S704  # our own files
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )


def inline_svg(svg: str, label: str = "") -> Markup:
    """Return a drawing of matplotlib without its XML prolog, with a label for those who cannot see it."""
    drawing = Markup(svg[svg.index("<svg") + len("<svg") :])  # noqa: S704  # matplotlib escapes the texts
    return Markup('<svg class="chart" role="img" aria-label="{}"').format(label) + drawing


def prose(text: str) -> Markup:
    """Return text with *emphasis*, **strong words** and `code` as HTML; everything else is escaped."""
    parts = re.split(r"`([^`]*)`", text)  # every second part is code
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else _emphasise(part) for place, part in enumerate(parts)
    )


def unbroken(text: str) -> Markup:
    """Return escaped text that no line breaks within an option of the command line, such as --no-header."""
    marked = re.sub(r"(?<![\w-])--[a-z][a-z-]*", r'<span class="option">\g<0></span>', str(escape(text)))
    return Markup(marked)  # noqa: S704  # escaped above


def _emphasise(text: str) -> Markup:
    strong = re.sub(r"\*\*(\S[^*]*)\*\*", r"<strong>\1</strong>", str(escape(text)))
    return Markup(re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", strong))  # noqa: S704  # escaped above

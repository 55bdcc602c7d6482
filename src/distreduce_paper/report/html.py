"""The page as one HTML file that asks for nothing else: styles and drawings are inside it, and it needs no script."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from distreduce_paper.report import words
from distreduce_paper.report.blocks import Figure, Table, Verdict
from distreduce_paper.report.content import Page
from distreduce_paper.report.summary import describe_gaps, describe_state, summarize

_NUMBER = re.compile(r"[+−-]?(\d|inf|nan)|–$")


class CellView(NamedTuple):
    """A cell as the template shows it: its text, its verdict, and its class for CSS."""

    text: str
    verdict: Verdict | None
    css: str


def render_html(page: Page) -> str:
    """The whole page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "prose": prose,
        "inline": inline,
        "width": width,
        "headings": headings,
        "rows": rows,
        "state": describe_state,
    }
    environment.filters |= {"lacking": describe_gaps, "kind": lambda block: type(block).__name__}
    source = files("distreduce_paper.report").joinpath("page.html.j2").read_text("utf-8")
    return environment.from_string(source).render(page=page, summary=summarize(page), words=words)


def prose(text: str) -> Markup:
    """Text with emphasis and code; everything else is escaped."""
    parts = re.split(r"`([^`]*)`", text)  # every second part is code
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else _emphasised(part) for place, part in enumerate(parts)
    )


def _emphasised(text: str) -> Markup:
    strong = re.sub(r"\*\*(\S[^*]*)\*\*", r"<strong>\1</strong>", str(escape(text)))
    return Markup(re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", strong))  # noqa: S704  # escaped above


def inline(figure: Figure) -> Markup:
    """The drawing without what only a file of its own needs."""
    return Markup(figure.svg[figure.svg.index("<svg") :])  # noqa: S704  # drawn by matplotlib, which escapes


def width(figure: Figure) -> str:
    """The drawing's own width, which it is not stretched beyond."""
    found = re.search(r'<svg[^>]* width="([0-9.]+(?:pt|px)?)"', figure.svg)
    return found.group(1) if found else "60rem"


def headings(table: Table) -> list[tuple[str, list[str]]]:
    """Headings with those under them: "MSE", "MSE, paper" and "MSE, difference" share one."""
    found: dict[str, list[str]] = {}
    for column in map(str, table.frame.columns):
        over, _, under = column.rpartition(", ")
        if under in ("paper", "difference") and found and over == next(reversed(found)):
            found[over] = [*(found[over] or ["ours"]), under]
        else:
            found[column] = []
    return list(found.items())


def rows(table: Table) -> list[list[CellView]]:
    """The cells, the numbers among them to be set right-aligned; SDR's rows are marked by their first cell."""
    return [
        [
            _cell(text, table.verdicts.get((row, column)))
            for column, text in zip(table.frame.columns, texts, strict=True)
        ]
        for row, texts in enumerate(table.frame.astype(str).to_numpy().tolist())
    ]


def _cell(text: str, verdict: Verdict | None) -> CellView:
    return CellView(text, verdict, verdict or ("number" if _NUMBER.match(text) else "word"))

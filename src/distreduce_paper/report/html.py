"""The report as one HTML file that needs neither network nor script: styles and drawings are inside it."""

from __future__ import annotations

import re
from typing import NamedTuple

from distreduce.report.renderer import render_page
from distreduce_paper.report import words
from distreduce_paper.report.blocks import Table, Verdict
from distreduce_paper.report.content import Page
from distreduce_paper.report.summary import describe_gaps, describe_state, summarize

_NUMBER = re.compile(r"[+−-]?(\d|inf|nan)|–$")


class TableCell(NamedTuple):
    """A cell of a table: its text, its verdict, and its class for CSS."""

    text: str
    verdict: Verdict | None
    css: str


def render_html(page: Page) -> str:
    """Render the page."""
    return render_page(
        "page.html.j2",
        {"title": words.TITLE, "page": page, "summary": summarize(page), "words": words},
        package="distreduce_paper.report",
        styles=("page.css",),
        filters={
            "state": describe_state,
            "gaps": describe_gaps,
            "headings": group_headings,
            "rows": _rows,
            "kind": lambda block: type(block).__name__,
        },
    )


def group_headings(table: Table) -> list[tuple[str, list[str]]]:
    """Group the columns: "MSE", "MSE, paper" and "MSE, difference" share one heading."""
    groups: dict[str, list[str]] = {}
    for column in map(str, table.frame.columns):
        over, _, under = column.rpartition(", ")
        # "MSE, paper" joins the group before it; names that contain a comma themselves stay alone.
        if under in ("paper", "difference") and groups and over == next(reversed(groups)):
            groups[over] = [*(groups[over] or ["ours"]), under]
        else:
            groups[column] = []
    return list(groups.items())


def _rows(table: Table) -> list[list[TableCell]]:
    return [
        [_cell(text, table.verdicts.get((row, name))) for name, text in zip(table.frame.columns, texts, strict=True)]
        for row, texts in enumerate(table.frame.astype(str).to_numpy().tolist())
    ]


def _cell(text: str, verdict: Verdict | None) -> TableCell:
    return TableCell(text, verdict, verdict or ("number" if _NUMBER.match(text) else "word"))

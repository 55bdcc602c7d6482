"""Writes the report. The same results give the same bytes, whatever order they were computed in.

As Markdown, with its figures as files beside it, and as one HTML file that needs neither network nor script.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup
from markupsafe import escape as markup_escape

from distreduce._utils.files import replacing
from distreduce.exceptions import StoreError
from distreduce.report.renderer import render_page
from distreduce_paper import NAMES, load_experiment
from distreduce_paper.report import words
from distreduce_paper.report.blocks import Block, Figure, Table, Text, Verdict
from distreduce_paper.report.content import Failure, Page, Section, build_page
from distreduce_paper.report.summary import Behind, Summary, describe_gaps, describe_state, format_counts, summarize
from distreduce_paper.store import Store


def render_markdown(page: Page) -> str:
    """Render the page; figures are read from ``figures/``."""
    summary = summarize(page)
    parts = [f"# {words.TITLE}", words.INTRODUCTION]
    parts += [f"> **{words.QUICK}**"] if summary.quick else []
    parts += [*_render_summary(summary), *_render_machines(page), "## Contents"]
    parts.append("\n".join(f"- [{escape(section.title)}](#{section.name})" for section in page.sections))
    parts += [text for section in page.sections for text in _render_section(section)]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Escape text on one line, so that Markdown shows it verbatim, also inside tables."""
    # HTML first: Markdown passes tags through.
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def escape_prose(text: str) -> str:
    """Escape text except for its emphasis and code."""
    # Inside backticks Markdown escapes by itself, and entities would show.
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else html.escape(part, quote=False) for part in parts)


def prose(text: str) -> Markup:
    """Return text with *emphasis*, **strong words** and `code` as HTML; everything else is escaped."""
    parts = re.split(r"`([^`]*)`", text)  # every second part is code
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else _emphasise(part) for place, part in enumerate(parts)
    )


def _emphasise(text: str) -> Markup:
    strong = re.sub(r"\*\*(\S[^*]*)\*\*", r"<strong>\1</strong>", str(markup_escape(text)))
    return Markup(re.sub(r"\*(\S[^*]*)\*", r"<em>\1</em>", strong))  # noqa: S704  # escaped above


def _render_summary(summary: Summary) -> list[str]:
    parts = ["## Summary"]
    if not summary.tallies:
        parts.append(words.NOTHING)
    else:
        parts.append(f"{words.GROUPS[0]}, against the paper's SDR rows: **{format_counts(summary.total.counts[0])}**.")
        rows = [[tally.title, *map(format_counts, tally.counts)] for tally in (*summary.tallies, summary.total)]
        parts += [_render_table(["Section", *words.GROUPS], rows), words.HOW_TO_READ]
    if summary.behind:
        parts += ["### SDR rows behind the paper", "\n".join(map(_render_behind, summary.behind))]
    if summary.incomplete:
        lines = [
            f"- [{escape(one.title)}](#{one.name}): {escape_prose(describe_gaps(one))}" for one in summary.incomplete
        ]
        parts += ["### Not complete yet", "\n".join(lines)]
    return parts


def _render_behind(one: Behind) -> str:
    numbers = "; ".join(
        f"{escape(number.metric)} on {escape(number.data)} {number.ours} (paper {number.paper})"
        for number in one.numbers
    )
    where = f"[{escape(one.section.title)}](#{one.section.name})"
    return f"- **{escape(one.method)}**, {where}: {numbers}. {escape_prose(one.reason or words.NO_REASON)}"


def _render_machines(page: Page) -> list[str]:
    if not page.machines:
        return []
    machines = "\n".join(f"- {escape(machine)}: {count} cells" for machine, count in page.machines)
    return ["## Machines and versions", machines, escape(", ".join(f"{name} {one}" for name, one in page.versions))]


def _render_section(section: Section) -> list[str]:
    # An anchor of our own: every Markdown renderer makes different ones from headings.
    parts = [f'<a id="{section.name}"></a>', f"## {escape(section.title)}", escape_prose(describe_state(section))]
    parts += [f"> **{words.QUICK}**"] if section.quick else []
    parts += [_render_block(block) for block in section.blocks]
    return parts + [_render_failure(failure) for failure in section.failures]


def _render_block(block: Block) -> str:
    if isinstance(block, Text):
        return escape_prose(block.text)
    if isinstance(block, Figure):
        return f"![{escape(block.caption)}](figures/{block.name}.svg)\n\n*{escape(block.caption)}*"
    return f"**{escape(block.caption)}**\n\n{_render_table(list(block.frame.columns), _mark_cells(block))}"


def _mark_cells(table: Table) -> list[list[str]]:
    return [
        [f"{words.MARKS[cell.verdict]} {cell.text}" if cell.verdict else cell.text for cell in row]
        for row in _rows(table)
    ]


def _render_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(columns) - 1)]  # words to the left, numbers to the right
    lines = [map(escape, columns), rule, *(map(escape, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _render_failure(failure: Failure) -> str:
    cells = "".join(f"<li>{_escape_html(cell)}</li>" for cell in failure.cells)
    return (
        f"<details><summary>Failed: {_escape_html(failure.kind)}: {_escape_html(failure.message)}</summary>\n"
        f"<ul>{cells}</ul>\n<pre>{_escape_block(failure.traceback)}</pre>\n</details>"
    )


def _escape_html(text: str) -> str:
    return html.escape(" ".join(text.split()))


def _escape_block(text: str) -> str:
    """Escape a traceback. Empty lines are dropped: one would end the HTML block and begin Markdown again."""
    return html.escape("\n".join(line for line in text.splitlines() if line.strip()))


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
            "prose": prose,
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


def write_report(store: Store, out: Path, names: Sequence[str] | None = None) -> list[Path]:
    """Write ``report.md``, ``report.html`` and ``figures/*.svg`` to the folder `out`, and return the files.

    The store may be empty or incomplete. `names` are the experiments to show, all by default. The folder is created if
    needed, and each file replaced atomically; if it cannot be written to, StoreError is raised.
    """
    page = build_page([load_experiment(name) for name in names or NAMES], store)
    texts = {f"figures/{figure.name}.svg": figure.svg for figure in page.figures}
    # Pages last: their figures exist by then.
    texts |= {"report.md": render_markdown(page), "report.html": render_html(page)}
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with replacing(out / name) as temporary:
                temporary.write_bytes(text.encode())
    except OSError as error:
        raise StoreError(f"Cannot write the report to {out}: {error}. Choose a folder with --out.") from error
    return [out / name for name in texts]

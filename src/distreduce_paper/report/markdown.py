"""The report as Markdown, with its figures as files beside it."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from distreduce_paper.report import words
from distreduce_paper.report.blocks import Block, Figure, Table, Text
from distreduce_paper.report.content import Failure, Page, Section
from distreduce_paper.report.summary import Behind, Summary, describe_gaps, describe_state, format_counts, summarize


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
    verdicts = table.verdicts
    return [
        [
            f"{words.MARKS[verdicts[row, column]]} {text}" if (row, column) in verdicts else text
            for column, text in zip(table.frame.columns, texts, strict=True)
        ]
        for row, texts in enumerate(table.frame.astype(str).to_numpy().tolist())
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

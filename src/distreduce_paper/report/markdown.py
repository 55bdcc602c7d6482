"""The page as Markdown, its figures as files beside it."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from distreduce_paper.blocks import Block, Figure, Table, Text
from distreduce_paper.report import words
from distreduce_paper.report.content import Failure, Page, Section
from distreduce_paper.report.summary import Behind, Summary, in_words, lacking, state, summarised


def as_markdown(page: Page) -> str:
    """The whole text; figures are read from ``figures/``."""
    summary = summarised(page)
    parts = [f"# {words.TITLE}", words.INTRODUCTION]
    parts += [f"> **{words.QUICK}**"] if summary.quick else []
    parts += [*_summary(summary), *_machines(page), "## Contents"]
    parts.append("\n".join(f"- [{plain(section.title)}](#{section.name})" for section in page.sections))
    parts += [text for section in page.sections for text in _section(section)]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """Text that Markdown shows as it stands, in a table too."""
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", html.escape(" ".join(text.split()), quote=False))


def prose(text: str) -> str:
    """Text with emphasis and code, everything else as it stands."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else html.escape(part, quote=False) for part in parts)


def _summary(summary: Summary) -> list[str]:
    parts = ["## Summary"]
    if not summary.tallies:
        parts.append(words.NOTHING)
    else:
        parts.append(f"{words.GROUPS[0]}, against the paper's SDR rows: **{in_words(summary.total.counts[0])}**.")
        rows = [[tally.title, *map(in_words, tally.counts)] for tally in (*summary.tallies, summary.total)]
        parts += [_table(["Section", *words.GROUPS], rows), words.HOW_TO_READ]
    if summary.behind:
        parts += ["### SDR rows behind the paper", "\n".join(map(_behind, summary.behind))]
    if summary.incomplete:
        lines = [f"- [{plain(one.title)}](#{one.name}): {prose(lacking(one))}" for one in summary.incomplete]
        parts += ["### Not complete yet", "\n".join(lines)]
    return parts


def _behind(one: Behind) -> str:
    numbers = "; ".join(
        f"{plain(number.metric)} on {plain(number.data)} {number.ours} (paper {number.paper})" for number in one.numbers
    )
    where = f"[{plain(one.section.title)}](#{one.section.name})"
    return f"- **{plain(one.method)}**, {where}: {numbers}. {prose(one.reason or words.NO_REASON)}"


def _machines(page: Page) -> list[str]:
    if not page.machines:
        return []
    machines = "\n".join(f"- {plain(machine)}: {count} cells" for machine, count in page.machines)
    return ["## Machines and versions", machines, plain(", ".join(f"{name} {one}" for name, one in page.versions))]


def _section(section: Section) -> list[str]:
    parts = [f'<a id="{section.name}"></a>', f"## {plain(section.title)}", prose(state(section))]
    parts += [f"> **{words.QUICK}**"] if section.quick else []
    parts += [_block(block) for block in section.blocks]
    return parts + [_failure(failure) for failure in section.failures]


def _block(block: Block) -> str:
    if isinstance(block, Text):
        return prose(block.text)
    if isinstance(block, Figure):
        return f"![{plain(block.caption)}](figures/{block.name}.svg)\n\n*{plain(block.caption)}*"
    return f"**{plain(block.caption)}**\n\n{_table(list(block.frame.columns), _marked(block))}"


def _marked(table: Table) -> list[list[str]]:
    verdicts = table.verdicts
    return [
        [
            f"{words.MARKS[verdicts[row, column]]} {text}" if (row, column) in verdicts else text
            for column, text in zip(table.frame.columns, texts, strict=True)
        ]
        for row, texts in enumerate(table.frame.astype(str).to_numpy().tolist())
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(columns) - 1)]
    lines = [map(plain, columns), rule, *(map(plain, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _failure(failure: Failure) -> str:
    cells = "".join(f"<li>{html.escape(cell)}</li>" for cell in failure.cells)
    return (
        f"<details><summary>Failed: {html.escape(failure.kind)}: {_line(failure.message)}</summary>\n"
        f"<ul>{cells}</ul>\n<pre>{html.escape(failure.traceback)}</pre>\n</details>"
    )


def _line(text: str) -> str:
    return html.escape(" ".join(text.split()))

"""The summary at the top of the report: how our numbers compare with the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from distreduce_paper.report.blocks import Comparison, Verdict
from distreduce_paper.report.content import Page, Section
from distreduce_paper.report.words import GROUPS, MARKS

OTHER_METHODS = 2  # index in GROUPS


@dataclass(frozen=True)
class Tally:
    """The verdicts of one section, or of all: one count for each of `GROUPS`."""

    name: str
    title: str
    counts: tuple[Counter[Verdict], ...]


@dataclass(frozen=True)
class Behind:
    """An SDR row that is worse than the paper's: its section, its numbers, and the reason if known."""

    section: Section
    method: str
    reason: str | None
    numbers: tuple[Comparison, ...]


@dataclass(frozen=True)
class Summary:
    """What the top of the page shows."""

    tallies: tuple[Tally, ...]
    total: Tally
    behind: tuple[Behind, ...]
    incomplete: tuple[Section, ...]
    quick: bool


def summarize(page: Page) -> Summary:
    """Summarize a page; a number that several sections show counts in the first."""
    seen: dict[tuple[str, ...], tuple[Section, Comparison]] = {}
    for section in page.sections:
        for one in section.comparisons:
            seen.setdefault((one.table, one.method, one.data, one.metric), (section, one))
    tallies = [
        _tally(section.name, section.title, (one for where, one in seen.values() if where is section))
        for section in page.sections
    ]
    return Summary(
        # Sections without a number of the paper are left out of the table.
        tallies=tuple(tally for tally in tallies if any(tally.counts)),
        total=_tally("", "All", (one for _, one in seen.values())),
        behind=_find_behind(seen.values()),
        incomplete=tuple(section for section in page.sections if describe_gaps(section)),
        quick=any(section.quick for section in page.sections),
    )


def _find_behind(comparisons: Iterable[tuple[Section, Comparison]]) -> tuple[Behind, ...]:
    # One entry per row of a table: its numbers share the reason.
    rows: dict[tuple[str, str, str | None], list[tuple[Section, Comparison]]] = {}
    for section, one in comparisons:
        if one.verdict == "worse" and _group(one) != OTHER_METHODS:
            rows.setdefault((section.name, one.method, one.reason), []).append((section, one))
    return tuple(
        Behind(found[0][0], method, reason, tuple(one for _, one in found))
        for (_, method, reason), found in rows.items()
    )


def format_counts(counts: Counter[Verdict]) -> str:
    """Format counts as in "▲ 12 better, = 3 equal, ▼ 1 worse"."""
    return ", ".join(f"{mark} {counts[verdict]} {verdict}" for verdict, mark in MARKS.items())


def format_duration(seconds: float) -> str:
    """Format a duration with at most two units: "2 h 5 min", "3 min 20 s", "12 s"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def describe_state(section: Section) -> str:
    """Describe what a section rebuilds of the paper, and how complete it is."""
    # Origin, then own cells and their time, then borrowed cells, then what is missing.
    parts = [f"Rebuilds {section.paper}." if section.paper else "Not in the paper."]
    if section.finished:
        parts.append(f"{_cells(section.finished)}, {format_duration(section.seconds)} of computing.")
    if section.borrowed:
        parts.append(f"Shows {'also ' if section.finished else ''}cells of {', '.join(section.borrowed)}.")
    return " ".join([*parts, describe_gaps(section)]).strip()


def describe_gaps(section: Section) -> str:
    """Describe what a section lacks and the command that computes it; empty if it is complete."""
    parts = []
    if failed := sum(len(one.cells) for one in section.failures):
        parts.append(f"{_cells(failed)} failed.")
    if section.missing:
        parts.append(f"{_cells(section.missing)} not computed yet: `{section.command}`.")
    elif not section.blocks:
        parts.append(f"Nothing to show yet: `{section.command}`.")
    return " ".join(parts)


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"


def _tally(name: str, title: str, comparisons: Iterable[Comparison]) -> Tally:
    counts: tuple[Counter[Verdict], ...] = tuple(Counter() for _ in GROUPS)
    for one in comparisons:
        counts[_group(one)][one.verdict] += 1
    return Tally(name, title, counts)


def _group(one: Comparison) -> int:
    if not one.counterpart.startswith("SDR"):
        return OTHER_METHODS
    return 0 if one.method == one.counterpart else 1  # our default row, or another of ours

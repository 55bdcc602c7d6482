"""Tables of our numbers next to the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd

from distreduce_paper.problems import Array
from distreduce_paper.published import PublishedNumber, distance, get_published, judge, label, table_title
from distreduce_paper.report.blocks import Block, Comparison, Table, Text, Verdict

SEEDS = 5  # behind every number of the paper
DASH = "–"
DIGITS = 3
Counterpart = Callable[[str], str | None]  # from a method to the row of the paper that it is compared with, or None
Reason = Callable[[str, str], str | None]  # from a method and a data set to why it is worse there


def comparison_tables(
    frame: pd.DataFrame,
    table: str,
    metrics: Mapping[str, str],
    counterpart: Counterpart,
    *,
    reason: Reason = lambda method, data: None,
) -> list[Block]:
    """Make one table per data set, with our means over seeds next to the paper's, and a line that counts verdicts.

    Each metric has three columns: our mean ± sample standard deviation (ddof = 1); the paper's; and the difference in
    standard deviations of the paper, where positive is better. Quick runs get no verdict, because they see less data.

    The frame has one row per cell, with columns data, method, quick and the metrics; it may be empty or have gaps.
    `table` is the name of the paper's table in published.json. `metrics` go from our columns to the paper's metrics, in
    the order in which they are shown. The summary of the report gives the reasons.
    """
    # Cells of older runs may lack a metric.
    columns = {ours: theirs for ours, theirs in metrics.items() if ours in frame}
    if frame.empty or not columns:
        return []
    sets = frame.groupby("data", sort=False)
    tables = [_build_table(str(data), rows, table, columns, counterpart, reason) for data, rows in sets]
    verdicts = [one.verdict for each in tables for one in each.comparisons]
    return [*tables, Text(f"{count_verdicts(verdicts)} than the paper.")] if verdicts else [*tables]


def count_verdicts(verdicts: Iterable[Verdict]) -> str:
    """Count the verdicts, as in "12 better, 3 equal, 1 worse"."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[one]} {one}" for one in ("better", "equal", "worse"))


def format_number(value: float, digits: int = DIGITS) -> str:
    """Format a number with about `digits` significant digits and a proper minus sign."""
    return _fixed(value, _decimals(value, digits))


def format_mean(values: Array, digits: int = DIGITS) -> str:
    """Format mean ± sample standard deviation (ddof = 1), both with the decimals that suit the mean."""
    if not len(values):
        return DASH
    mean = float(np.mean(values))
    if len(values) == 1 or not np.isfinite(values).all():
        return format_number(mean, digits)
    # The deviation gets the decimals of the mean, so that both can be compared by eye.
    decimals = _decimals(mean, digits)
    return f"{_fixed(mean, decimals)} ± {_fixed(float(np.std(values, ddof=1)), decimals)}"


def _build_table(
    data: str, rows: pd.DataFrame, table: str, metrics: Mapping[str, str], counterpart: Counterpart, reason: Reason
) -> Table:
    """Build the table of one data set, one row per method."""
    lines, verdicts, comparisons = [], {}, []
    for row, (method, own) in enumerate(rows.groupby("method", sort=False)):
        line, theirs = {"Method": str(method)}, counterpart(str(method))
        for column, metric in metrics.items():
            values, name = own[column].dropna().to_numpy(float), label(metric)
            paper = None if theirs is None else get_published(table, theirs, data, metric)
            # Three columns, filled from the left as far as there are numbers.
            line |= {name: _ours(values), f"{name}, paper": DASH, f"{name}, difference": DASH}
            if theirs is None or paper is None:
                continue
            line[f"{name}, paper"] = _theirs(paper)
            if not len(values) or own["quick"].any():  # quick runs see less data: no verdict
                continue
            line[f"{name}, difference"] = _signed(distance(values, paper))
            verdict = verdicts[row, f"{name}, difference"] = judge(values, paper)
            why = reason(str(method), data) if verdict == "worse" else None
            numbers = (_ours(values), _theirs(paper))
            comparisons.append(Comparison(table, str(method), theirs, label(data), name, *numbers, verdict, why))
        lines.append(line)
    return Table(f"{label(data)} · {table_title(table)}", pd.DataFrame(lines), verdicts, tuple(comparisons))


def _ours(values: Array) -> str:
    """Our number, with the number of seeds if it differs from the paper's."""
    seeds = f" ({len(values)} seed{'s' * (len(values) > 1)})" if 0 < len(values) != SEEDS else ""
    return format_mean(values) + seeds


def _theirs(paper: PublishedNumber) -> str:
    return _fixed(paper.mean, 2) + ("" if paper.std is None else f" ± {_fixed(paper.std, 2)}")


def _decimals(value: float, digits: int) -> int:
    if not np.isfinite(value) or value == 0.0:
        return digits
    wanted = digits - 1 - int(np.floor(np.log10(abs(value))))
    small = abs(value) < 10.0 ** (1 - digits)  # 0.0043 next to 0.0018 needs one more decimal than 0.126
    return min(max(wanted, 0), digits + small)


def _fixed(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}".replace("-", "−")


def _signed(value: float) -> str:
    if round(value, 1) == 0.0:
        return "0.0"
    return f"{value:+.{0 if abs(value) >= 100 else 1}f}".replace("-", "−")

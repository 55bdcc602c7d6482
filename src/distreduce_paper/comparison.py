"""Our numbers next to the paper's: ``comparison_tables(frame, table, metrics, counterpart, reason=..., digits=3)``.

    comparison_tables(frame, "gp_regression", {"mll": "mll", "mse": "mse"}, counterpart)

is a table a data set of `frame`, a row a method in the frame's order, and for every metric three columns: our mean ±
sample standard deviation (ddof = 1) over the seeds, with the number of seeds if it is not five; the paper's; and the
difference in standard deviations of the paper, + being better, marked as better, equal or worse. A line of text counts
these. Cells of quick runs are shown without a verdict, because they see less data. An empty frame gives no blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from distreduce._utils.typing import Array
from distreduce_paper.blocks import Block, Comparison, Table, Text, Verdict
from distreduce_paper.paper import Printed, distance, label, printed, title, verdict

SEEDS = 5  # of every row in the paper
DASH = "–"


def comparison_tables(
    frame: pd.DataFrame,
    table: str,
    metrics: Mapping[str, str],
    counterpart: Callable[[str], str | None],
    *,
    reason: Callable[[str, str], str | None] = lambda method, data: None,
    digits: int = 3,
) -> list[Block]:
    """Tables of means over seeds next to the paper's, one a data set, and a line that counts the verdicts.

    Parameters
    ----------
    frame : DataFrame
        A row a cell with columns data, method, quick and the metrics; a row a seed of every method and data set. May
        be empty, or lack methods, data sets, seeds or metrics.
    table : str
        Name of the paper's table in paper.json.
    metrics : mapping
        From our column to the paper's metric, in the order in which they are shown.
    counterpart : callable
        From the name of a method to the paper's row that it is held against, or None.
    reason : callable
        From the name of a method and of a data set to a sentence that says why it is worse there; the report's summary
        shows it if it is worse.
    digits : int
        Significant digits of our numbers.
    """
    columns = {ours: theirs for ours, theirs in metrics.items() if ours in frame}
    if frame.empty or not columns:
        return []
    against = _Against(table, columns, counterpart, reason, digits)
    tables = [against.table_of(str(data), rows) for data, rows in frame.groupby("data", sort=False)]
    verdicts = [one.verdict for each in tables for one in each.comparisons]
    return [*tables, Text(f"{counted(verdicts)} than the paper.")] if verdicts else [*tables]


def counted(verdicts: Iterable[Verdict]) -> str:
    """How many of each, as "12 better, 3 equal, 1 worse"."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[one]} {one}" for one in ("better", "equal", "worse"))


def number(value: float, digits: int = 3) -> str:
    """A number with about `digits` significant digits and no more decimals, with a true minus sign."""
    return _fixed(value, _decimals(value, digits))


def mean_and_deviation(values: Array, digits: int = 3) -> str:
    """Mean ± sample standard deviation (ddof = 1), both with the decimals that suit the mean."""
    if not len(values):
        return DASH
    mean = float(np.mean(values))
    if len(values) == 1 or not np.isfinite(values).all():
        return number(mean, digits)
    decimals = _decimals(mean, digits)
    return f"{_fixed(mean, decimals)} ± {_fixed(float(np.std(values, ddof=1)), decimals)}"


@dataclass(frozen=True)
class _Against:
    """A table of the paper, and how ours is held against it."""

    table: str
    metrics: Mapping[str, str]
    counterpart: Callable[[str], str | None]
    reason: Callable[[str, str], str | None]
    digits: int

    def table_of(self, data: str, rows: pd.DataFrame) -> Table:
        """All methods on one data set."""
        lines, verdicts, comparisons = [], {}, []
        for row, (method, own) in enumerate(rows.groupby("method", sort=False)):
            line = {"Method": str(method)}
            for ours, theirs in self.metrics.items():
                values = own[ours].dropna().to_numpy(float)
                paper = self.paper(str(method), data, theirs)
                name = label(theirs)
                line |= {name: _ours(values, self.digits), f"{name}, paper": DASH, f"{name}, difference": DASH}
                if paper is None:
                    continue
                line[f"{name}, paper"] = _theirs(paper)
                if not len(values) or own["quick"].any():
                    continue
                line[f"{name}, difference"] = _signed(distance(values, paper))
                found = self.comparison(str(method), data, theirs, values, paper)
                verdicts[row, f"{name}, difference"] = found.verdict
                comparisons.append(found)
            lines.append(line)
        return Table(f"{label(data)} · {title(self.table)}", pd.DataFrame(lines), verdicts, tuple(comparisons))

    def paper(self, method: str, data: str, metric: str) -> Printed | None:
        """What the paper prints in our method's place."""
        row = self.counterpart(method)
        return None if row is None else printed(self.table, row, data, metric)

    def comparison(self, method: str, data: str, metric: str, values: Array, paper: Printed) -> Comparison:
        """The comparison as the summary of the report shows it."""
        found = verdict(values, paper)
        return Comparison(
            table=self.table,
            method=method,
            counterpart=self.counterpart(method) or "",
            data=label(data),
            metric=label(metric),
            ours=_ours(values, self.digits),
            paper=_theirs(paper),
            verdict=found,
            reason=self.reason(method, data) if found == "worse" else None,
        )


def _ours(values: Array, digits: int) -> str:
    seeds = f" ({len(values)} seed{'s' * (len(values) > 1)})" if 0 < len(values) != SEEDS else ""
    return mean_and_deviation(values, digits) + seeds


def _theirs(paper: Printed) -> str:
    return _fixed(paper.mean, 2) + ("" if paper.std is None else f" ± {_fixed(paper.std, 2)}")


def _decimals(value: float, digits: int) -> int:
    if not np.isfinite(value) or value == 0.0:
        return digits
    wanted = digits - 1 - int(np.floor(np.log10(abs(value))))
    small = abs(value) < 10.0 ** (1 - digits)  # 0.0043 next to 0.0018 wants one more decimal than 0.126
    return min(max(wanted, 0), digits + small)


def _fixed(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}".replace("-", "−")


def _signed(value: float) -> str:
    if round(value, 1) == 0.0:
        return "0.0"
    return f"{value:+.{0 if abs(value) >= 100 else 1}f}".replace("-", "−")

"""The held-out scores on the screen, however narrow it is: no number is ever cut."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from distreduce.cli._comparison import COMPONENTS, OURS, PLAIN
from distreduce.cli._models import WIDE

SCORES = {"r2": "R²", "rmse": "RMSE", "accuracy": "accuracy", "mll": "log density", "mlp": "log probability",
          "coverage_90": "within 90 %", "ece": "calibration error"}  # fmt: skip

FORMATS = {"rmse": ".4g"}  # in the units of the target; all others are of the size of one


def show_scores(metrics: dict[str, Any]) -> None:
    """Held-out scores of the three models: what each sees beside them if there is room, a row a score if there is none.

    The first layout that fits is taken, or else the narrowest.
    """
    if metrics["held_out"] is None:
        return
    scores, sees = metrics["held_out"]["scores"], _sees(metrics)
    shown = [key for key in SCORES if key in scores[OURS]]
    heads = ["", *(SCORES[key] for key in shown)]
    rows = [[name, *(_cell(found.get(key), key) for key in shown)] for name, found in scores.items()]
    seen = [[row[0], sees[row[0]], *row[1:]] for row in rows]
    broken = [[cell.replace(" ", "\n", 1) for cell in row] for row in (heads, *rows)]
    turned = [list(column) for column in zip(*broken, strict=True)]
    console = Console()
    layouts = [
        _table(metrics, ["", "sees", *heads[1:]], seen, words=2),
        _table(metrics, heads, rows),
        _table(metrics, broken[0], rows),
        _table(metrics, turned[0], turned[1:]),
    ]
    layouts[-1].show_edge = False
    unbounded = console.options.update(max_width=1000)  # else no table is measured wider than the screen
    fitting = [table for table in layouts if console.measure(table, options=unbounded).maximum <= console.width]
    console.print((fitting or layouts[-1:])[0])


def _sees(metrics: dict[str, Any]) -> dict[str, str]:
    p, d = metrics["choices"]["components"], metrics["columns_of_x"]
    # Of numbers, the predictor mixes what it says from the embedding with what it says from all columns.
    mixed = f" + {d} columns" if metrics["task"] == "regression" and d <= WIDE else ""
    return {OURS: f"{p} axes{mixed}", PLAIN: f"{d} columns", COMPONENTS: f"{min(p, d)} axes"}


def _cell(value: float | None, key: str) -> str:
    return "–" if value is None else f"{value:{FORMATS.get(key, '.3f')}}"


def _table(metrics: dict[str, Any], heads: list[str], rows: list[list[str]], words: int = 1) -> Table:
    """The first columns are words, all others numbers."""
    held_out = metrics["held_out"]
    title = Text(f"Held-out scores: {held_out['test_rows']:,} rows, fitted to {held_out['train_rows']:,} others")
    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, head in enumerate(heads):
        table.add_column(Text(head), justify="left" if place < words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row), style="bold" if row[0] == OURS else "")
    return table

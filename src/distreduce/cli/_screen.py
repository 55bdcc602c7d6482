"""What ``distreduce fit`` says: what it guessed, how well it went, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from distreduce._utils.progress import progress_bar
from distreduce._utils.text import list_words
from distreduce.cli._folder import PREDICTOR, REPORT
from distreduce.tables.columns import Dropped
from distreduce.tables.prepare import PreparedTable

MOST_LINES = 20


@contextmanager
def progress(total: int, *, silent: bool) -> Iterator[Callable[[str], object]]:
    """A bar on standard error, if that is a terminal; call what it gives with the name of each step."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TimeElapsedColumn())
    with progress_bar(*columns, visible=not silent) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda words: bar.update(task, description=words, advance=1)


def show_guesses(data: PreparedTable, name: str) -> None:
    """The task, and what each column is taken as: a line a column, or a line a kind if there are many."""
    n, target = len(data.table), data.target
    classes = f", {target.y.nunique()} classes" if target.task == "classification" else ""
    words = f"; {list_words(target.unknown_words)} taken as missing" if target.unknown_words else ""
    console = Console()
    console.print(
        Text.assemble(
            (name, "bold"), f": {n:,} rows. Target ", (", ".join(target.names), "bold"),
            f": {target.task}{classes}{words}.",
        )
    )  # fmt: skip
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("in the file", overflow="fold")
    table.add_column("taken as", overflow="fold")
    table.add_column("columns of X", justify="right")
    for names, words, width in _lines(data):
        style = "dim" if not width else ""
        table.add_row(Text(names, style=style), Text(words, style=style), str(width or "–"))
    console.print(table)


def _lines(data: PreparedTable) -> list[tuple[str, str, int]]:
    rules = data.recipe.rules
    if data.recipe.image_shape is not None:
        return [("X", "images of {} × {}, one scale for all".format(*data.recipe.image_shape), len(rules))]
    if len(rules) <= MOST_LINES:
        return [(rule.name, rule.describe(), len(rule.columns())) for rule in rules]
    groups: dict[str, list[Any]] = {}
    for rule in rules:
        groups.setdefault(rule.describe() if isinstance(rule, Dropped) else rule.kind, []).append(rule)
    lines = []
    for words, group in groups.items():
        names = ", ".join(rule.name for rule in group[:3]) + (", …" if len(group) > 3 else "")
        count = f"{len(group)}: " if len(group) > 1 else ""
        lines.append((count + names, words, sum(len(rule.columns()) for rule in group)))
    return lines


def show_notes(notes: Sequence[str]) -> None:
    """Notes, a line each."""
    for note in notes:
        Console().print(Text.assemble(("note ", "yellow"), note))


def show_next(folder: Path, metrics: dict[str, Any]) -> None:
    """Where everything is, and what one does next."""
    picture = metrics["picture"]
    all_rows = picture["prototypes"] == metrics["rows"]["fit"]
    few = "a prototype a row" if all_rows else f"{picture['prototypes_used']} prototypes"
    command = "predict" if (folder / PREDICTOR).exists() else "transform"
    console = Console()
    console.print(Text.assemble("\nWrote ", (str(folder), "bold green"), f": {few}, models, tables and the report."))
    for words, line in (
        ("look at it", str(folder / REPORT)),
        ("new rows", f"distreduce {command} {shlex.quote(str(folder))} new.csv"),
    ):
        console.print(Text.assemble(f"  {words:<12}", (line, "bold")), soft_wrap=True)

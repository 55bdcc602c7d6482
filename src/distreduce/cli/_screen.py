"""What ``distreduce fit`` prints: what it guessed, the held-out scores, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from distreduce._utils.text import list_words, number_text, progress_bar, strip_control
from distreduce.cli._models import OURS
from distreduce.cli._names import PREDICTOR, REPORT
from distreduce.cli._study import Study
from distreduce.cli._tables import read_held_out
from distreduce.report.evidence import Verdict, describe_optimism
from distreduce.report.held_out import describe_headline
from distreduce.report.predictions import sort_experts
from distreduce.tables.columns import Dropped
from distreduce.tables.prepare import PreparedTable

MAX_LINES = 20
SCORES = {"r2": "R²", "rmse": "RMSE", "accuracy": "accuracy", "mll": "log density", "mlp": "log probability",
          "coverage_90": "within 90 %", "ece": "calibration error",
          "ece_by_chance": "by chance alone"}  # fmt: skip
EXPERT_NAMES = {
    "embedding": "Gaussian process on the embedding",
    "inputs": "smooth Gaussian process",
    "rough_inputs": "rough Gaussian process",
    "isotropic": "isotropic Gaussian process",
    "linear": "linear model",
    "forest": "random forest",
    "boosting": "boosted trees",
}


@contextmanager
def progress(steps: Mapping[str, float], *, silent: bool) -> Iterator[Callable[[str], object]]:
    """Show a progress bar on standard error if that is a terminal; call the result with the name of each step.

    `steps` has the share of the time that each is expected to take.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TimeElapsedColumn(), TimeLeft())
    with progress_bar(*columns, visible=not silent) as bar:
        task = bar.add_task("rows", total=sum(steps.values()), reached=0.0)

        def advance(words: str) -> None:
            done = sum(list(steps.values())[: list(steps).index(words)])
            bar.update(task, description=words, completed=done, reached=bar.tasks[0].elapsed or 0.0)

        yield advance


class TimeLeft(ProgressColumn):
    """The time that is left, in proportion to the steps that are done; none during the first."""

    def render(self, task: Task) -> Text:
        left = predict_left(task.completed, task.total or 0.0, task.fields["reached"], task.elapsed or 0.0)
        return Text("" if left is None else f"about {left:.0f} s left", style="progress.remaining")


def predict_left(done: float, total: float, reached: float, elapsed: float) -> float | None:
    """Seconds left if shares `done` of `total` were reached after `reached` seconds; it falls as time passes."""
    if done == 0.0:
        return None
    return max(reached / done * (total - done) - (elapsed - reached), 1.0)


@contextmanager
def count_rows(*, silent: bool) -> Iterator[Callable[[int], object]]:
    """Show how long a command has been at work; call the result with the number of rows that are done."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress_bar(*columns, visible=not silent) as bar:
        task = bar.add_task("reading")
        yield lambda n: bar.update(task, description=f"{n:,} rows")


def say_beside(line: str) -> None:
    Console(stderr=True).print(printable(line))


def printable(text: str, style: str = "") -> Text:
    """Return text from a file without the control characters that could steer the terminal."""
    return Text(strip_control(text), style=style)


def show_guesses(data: PreparedTable, name: str) -> None:
    """Print the task and how each column is read: one line per column, or one per kind if there are many columns."""
    # One sentence about the target, then the columns; names from the file pass through `printable`.
    n, target = len(data.table), data.target
    classes = f", {target.y.nunique()} classes" if target.task == "classification" else ""
    words = f"; {list_words(target.unknown_words)} taken as missing" if target.unknown_words else ""
    console = Console()
    console.print(
        Text.assemble(
            printable(name, "bold"), f": {n:,} rows. Target ", printable(", ".join(target.names), "bold"),
            f": {target.task}{classes}{words}.",
        )
    )  # fmt: skip
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("column", overflow="fold")
    table.add_column("read as", overflow="fold")
    table.add_column("columns of X", justify="right")
    for names, kind, width in _describe_columns(data):
        style = "" if width else "dim"
        table.add_row(printable(names, style), printable(kind, style), str(width or "–"))
    console.print(table)


def _describe_columns(data: PreparedTable) -> list[tuple[str, str, int]]:
    rules = data.recipe.rules
    if data.recipe.image_shape is not None:
        return [("X", "images of {} × {}, scaled together".format(*data.recipe.image_shape), len(rules))]
    # A few columns are listed one by one, many are grouped by kind.
    if len(rules) <= MAX_LINES:
        return [(rule.name, rule.describe(), len(rule.columns())) for rule in rules]
    groups: dict[str, list[Any]] = {}
    for rule in rules:
        groups.setdefault(rule.describe() if isinstance(rule, Dropped) else rule.kind, []).append(rule)
    lines = []
    for kind, group in groups.items():
        names = ", ".join(rule.name for rule in group[:3]) + (", …" if len(group) > 3 else "")
        count = f"{len(group)}: " if len(group) > 1 else ""
        lines.append((count + names, kind, sum(len(rule.columns()) for rule in group)))
    return lines


def show_results(data: PreparedTable, study: Study, metrics: dict[str, Any], within: str) -> None:
    """Print scores, the weights of the experts, what predictor and picture are worth, and notes on the fit."""
    show_scores(metrics)
    show_experts(metrics)
    if study.held_out is not None:
        named = read_held_out(study.held_out, data.target, {})
        show_verdict(describe_headline(named, data.target.names))
    show_verdict(describe_optimism(study.model, within))
    show_notes(study.notes)


def show_scores(metrics: dict[str, Any]) -> None:
    """Print the held-out scores; on a narrow screen with one row per score, so that no number is cut."""
    if metrics["held_out"] is None:
        return
    scores = metrics["held_out"]["scores"]
    shown = [key for key in SCORES if key in scores[OURS]]
    cells = [["", *(SCORES[key] for key in shown)]]
    cells += [[name, *(score_text(found.get(key), key) for key in shown)] for name, found in scores.items()]
    wide, console = _make_table(metrics, cells), Console()
    unbounded = console.options.update(max_width=1000)  # else no table is measured wider than the screen
    narrow = _make_table(metrics, [[cell.replace(" ", "\n", 1) for cell in row] for row in zip(*cells, strict=True)])
    narrow.show_edge = False
    console.print(wide if console.measure(wide, options=unbounded).maximum <= console.width else narrow)


def show_experts(metrics: dict[str, Any]) -> None:
    """Print how much each expert has of the predictor."""
    shares = sort_experts(metrics["experts"])
    listed = ", ".join(f"{EXPERT_NAMES.get(name, name)} {share}" for name, share, _ in shares)
    if listed:
        Console().print(Text.assemble((f"{OURS} ", "bold"), f"is a mixture, weighted by left-out rows: {listed}."))


def score_text(value: float | None, key: str) -> str:
    """Return a score with the digits that suit it."""
    if value is None:
        return "–"
    return number_text(value) if key == "rmse" else f"{value:.3f}"  # in the units of y, all others of the size of one


def _make_table(metrics: dict[str, Any], cells: list[list[str]]) -> Table:
    """Lay out the scores, headings first; the first column holds words, all others numbers."""
    held_out = metrics["held_out"]
    title = Text(f"Held-out scores: {held_out['test_rows']:,} rows, fitted to {held_out['train_rows']:,} others. ")
    title.append(printable(held_out["how"]))
    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, head in enumerate(cells[0]):
        table.add_column(Text(head), justify="right" if place else "left", no_wrap=True)
    for row in cells[1:]:
        table.add_row(*(Text(cell) for cell in row), style="bold" if row[0] == OURS else "")
    return table


def show_verdict(found: Verdict | None) -> None:
    """Print a verdict and the sentence that explains it."""
    if found is not None:
        style = "bold yellow" if found.warns else "bold"
        Console().print(Text.assemble(printable(f"{found.verdict}: ", style), printable(found.sentence)))


def show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        Console().print(Text.assemble(("note ", "yellow"), printable(note)))


def show_next_steps(folder: Path, metrics: dict[str, Any]) -> None:
    """Print where the results are and what to do with them."""
    picture = metrics["picture"]
    all_rows = picture["prototypes"] == metrics["rows"]["fit"]
    used, allowed = picture["prototypes_used"], picture["prototypes"]
    few = "one prototype per row" if all_rows else f"{used} prototypes"
    few += f" ({allowed} were allowed, {used} were enough)" if used < allowed else ""
    command = "predict" if (folder / PREDICTOR).exists() else "transform"
    console = Console()
    console.print(Text.assemble("\nWrote ", (str(folder), "bold green"), f": {few}, models, tables and the report."))
    for words, line in (
        ("open", str(folder / REPORT)),
        ("new rows", f"distreduce {command} {shlex.quote(str(folder))} new.csv"),
    ):
        # soft_wrap: a path broken into two lines could not be copied.
        console.print(Text.assemble(f"  {words:<10}", (line, "bold")), soft_wrap=True)

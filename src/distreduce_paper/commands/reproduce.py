"""``distreduce reproduce``: the paper's tables and figures, run and reported."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from distreduce._utils.progress import progress_bar
from distreduce.exceptions import FailedCellsError, InvalidInputError

if TYPE_CHECKING:
    from distreduce_paper import Cell, Experiment, Selection
    from distreduce_paper.runner import Outcome
    from distreduce_paper.store import Store

app = typer.Typer(
    help="Rebuild the paper's tables and figures beside its own numbers.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RESULTS = Path("results/paper")
QUICK_RESULTS = Path("results/paper-quick")

Results = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the results: finished cells are kept there. Default: results/paper, or results/paper-quick.",
        show_default=False,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Small data, two seeds, few prototypes: minutes for everything.")]
Seeds = Annotated[int | None, typer.Option(min=1, help="Number of seeds instead of the experiment's own.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes; they share the cores.")]
Datasets = Annotated[list[str] | None, typer.Option(help="Only these data sets; give it once for each.")]
Methods = Annotated[list[str] | None, typer.Option(help="Only these methods; give it once for each.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler to compute on, such as tcp://host:8786.")]
Plugin = Annotated[list[Path] | None, typer.Option(help="Python file that registers methods or data sets of yours.")]
Retry = Annotated[bool, typer.Option("--retry", help="Try cells again that have failed before.")]


@app.command("list")
def list_(
    results: Results = None,
    quick: Quick = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What can be rebuilt, and how much of it is there."""
    from distreduce_paper import NAMES, Selection, experiment

    store, selection = _store(results, quick), Selection(quick=quick)
    rows = [_row(experiment(name), store, selection) for name in NAMES]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    Console().print(_table(rows, store.folder))


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(help="Experiments, by the names of `distreduce reproduce list`.")],
    results: Results = None,
    quick: Quick = False,
    seeds: Seeds = None,
    jobs: Jobs = 1,
    datasets: Datasets = None,
    methods: Methods = None,
    dask: Dask = None,
    plugin: Plugin = None,
    retry: Retry = False,
) -> None:
    """Run experiments. Stopped at any point, the same command goes on where it was.

    A cell that fails does not stop the others; the exit code is 1 as long as there are such cells.
    """
    _refuse_failures(
        _run(names, results, quick, seeds, jobs, datasets, methods, dask, plugin, retry), _store(results, quick)
    )


@app.command("all")
def all_(
    results: Results = None,
    quick: Quick = False,
    seeds: Seeds = None,
    jobs: Jobs = 1,
    datasets: Datasets = None,
    methods: Methods = None,
    dask: Dask = None,
    plugin: Plugin = None,
    retry: Retry = False,
) -> None:
    """Run everything, then write the report; the exit code is 1 if cells have failed."""
    from distreduce_paper import NAMES

    cells = _run(list(NAMES), results, quick, seeds, jobs, datasets, methods, dask, plugin, retry)
    _write_report(_store(results, quick), None)
    _refuse_failures(cells, _store(results, quick))


@app.command()
def report(
    results: Results = None,
    quick: Quick = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the report. Default: that of the results.", show_default=False)
    ] = None,
    plugin: Plugin = None,
) -> None:
    """Write report.md, report.html and the figures from the results that are there."""
    from distreduce_paper.plugins import load_plugins

    load_plugins(tuple(str(path) for path in plugin or ()))
    _write_report(_store(results, quick), out)


def _store(results: Path | None, quick: bool) -> Store:
    from distreduce_paper.store import Store

    return Store(results or (QUICK_RESULTS if quick else RESULTS))


def _row(one: Experiment, store: Store, selection: Selection) -> dict[str, Any]:
    keys = {cell.key for cell in one.cells(selection)} if one.run else set()
    done = keys & store.finished(one.name, also_failed=False)
    failed = (keys & store.finished(one.name)) - done
    return {
        "name": one.name,
        "rebuilds": one.paper or "not in the paper: " + one.title.lower(),
        "cells": len(keys),
        "sources": list(one.sources),
        "done": len(done),
        "failed": len(failed),
    }


def _table(rows: list[dict[str, Any]], folder: Path) -> Table:
    table = Table(
        title=Text(f"Cells in {folder}"), title_justify="left", title_style="", box=box.SIMPLE_HEAD, show_footer=True
    )
    table.add_column("experiment", "all", style="bold")
    table.add_column("rebuilds")
    for count in ("cells", "done", "failed"):
        table.add_column(count, str(sum(row[count] for row in rows)), justify="right")
    for row in rows:
        shows = "" if row["cells"] else f", from the cells of {' and '.join(row['sources'])}"
        done = Text(str(row["done"] or ""), style="green" if row["done"] == row["cells"] else "yellow")
        failed = Text(str(row["failed"] or ""), style="red")
        table.add_row(row["name"], Text(row["rebuilds"] + shows), str(row["cells"] or ""), done, failed)
    return table


def _run(
    names: Sequence[str],
    results: Path | None,
    quick: bool,
    seeds: int | None,
    jobs: int,
    datasets: Sequence[str] | None,
    methods: Sequence[str] | None,
    dask: str | None,
    plugin: Sequence[Path] | None,
    retry: bool,
) -> list[Cell]:
    from distreduce_paper import Selection, experiment
    from distreduce_paper.experiment import check_selection
    from distreduce_paper.plugins import load_plugins
    from distreduce_paper.runner import run_cells

    plugins = tuple(str(path.resolve()) for path in plugin or ())
    load_plugins(plugins)
    selection = Selection(tuple(datasets) if datasets else None, tuple(methods) if methods else None, seeds, quick)
    wanted = _with_sources([experiment(name) for name in names])
    check_selection(selection, wanted)
    store = _store(results, quick)
    # Cells whose seconds matter come last and one at a time.
    groups = {
        exclusive: [cell for one in wanted if one.run and one.exclusive == exclusive for cell in one.cells(selection)]
        for exclusive in (False, True)
    }
    if not any(groups.values()):
        raise InvalidInputError("There is nothing to run: none of these methods goes with any of these data sets.")
    for exclusive, cells in groups.items():
        if cells:
            with _progress(len(cells)) as show:
                outcome = run_cells(
                    cells, store, jobs=1 if exclusive else jobs, dask=None if exclusive else dask,
                    plugins=plugins, retry=retry, report=show,
                )  # fmt: skip
            _say(outcome, store)
    return [cell for cells in groups.values() for cell in cells]


def _refuse_failures(cells: Sequence[Cell], store: Store) -> None:
    """Cells that failed before count too: a script that goes on must not find half of its results."""
    asked: dict[str, set[str]] = {}
    for cell in cells:
        asked.setdefault(cell.experiment, set()).add(cell.key)
    failed = {
        name: len(keys & store.finished(name) - store.finished(name, also_failed=False)) for name, keys in asked.items()
    }
    if any(failed.values()):
        files = ", ".join(str(store.path(name)) for name, count in failed.items() if count)
        raise FailedCellsError(
            f"{sum(failed.values())} of {sum(map(len, asked.values()))} cells have failed; their tracebacks are in "
            f'{files} (lines with "error"). The next run leaves them as they are; --retry tries them again.'
        )


def _with_sources(wanted: Sequence[Experiment]) -> list[Experiment]:
    """The experiments and those whose cells they show, each once."""
    from distreduce_paper import experiment

    names = dict.fromkeys(name for one in wanted for name in (*one.sources, one.name))
    return [experiment(name) for name in names]


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A bar with the time left on a terminal, on standard error; what fails is said at once."""
    from rich import progress

    from distreduce_paper import Cell

    columns = (
        progress.BarColumn(20),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
    )
    # Cells take from a second to an hour: only their mean over the whole run says anything about the time left.
    with progress_bar(*columns, expand=True, speed_estimate_period=math.inf) as bar:
        task = bar.add_task("", total=total)

        def show(record: dict[str, Any] | None) -> None:
            if record is None:  # was there: no measure of the speed
                bar.reset(task, completed=int(bar.tasks[task].completed) + 1)
                return
            bar.update(task, advance=1, description=f"{record['method']} on {record['data']}")
            if "error" in record:
                error = f"{record['error']['type']}: {record['error']['message']}"
                words = f"failed: {Cell.from_dict(record)}: {error}"
                bar.console.print(Text(words, style="red"), soft_wrap=True)

        yield show
        bar.update(task, description="")


def _say(outcome: Outcome, store: Store) -> None:
    typer.echo(
        f"{outcome.asked} cells: {outcome.kept} were there, {outcome.computed} computed, "
        f"{outcome.failed} of these failed; kept in {store.folder}"
    )


def _write_report(store: Store, out: Path | None) -> None:
    from distreduce_paper import NAMES
    from distreduce_paper.report import write_report

    for path in write_report(store, out or store.folder, NAMES):
        typer.echo(f"Wrote {path}")

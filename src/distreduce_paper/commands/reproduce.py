"""``distreduce reproduce``: compute the paper's tables and figures, and write the report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from distreduce.exceptions import FailedCellsError, InvalidInputError

if TYPE_CHECKING:
    from distreduce_paper import Cell, Experiment, Selection
    from distreduce_paper.store import CellResult, Store

app = typer.Typer(
    help="Rebuild the paper's tables and figures next to its own numbers.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RESULTS = Path("results/paper")
QUICK_RESULTS = Path("results/paper-quick")

Results = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the results, where finished cells are kept. Default: results/paper, or results/paper-quick.",
        show_default=False,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Small data, two seeds, few prototypes: minutes for everything.")]
Seeds = Annotated[int | None, typer.Option(min=1, help="Number of seeds instead of the experiment's own.")]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes, which share the cores.")]
Datasets = Annotated[list[str] | None, typer.Option(help="Only these data sets; repeat the option for several.")]
Methods = Annotated[list[str] | None, typer.Option(help="Only these methods; repeat the option for several.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler to compute on, such as tcp://host:8786.")]
Plugin = Annotated[list[Path] | None, typer.Option(help="Python file that registers your own methods or data sets.")]
Retry = Annotated[bool, typer.Option("--retry", help="Compute cells again that have failed before.")]


@app.command("list")
def list_(
    results: Results = None,
    quick: Quick = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List what can be rebuilt, and how much of it is computed."""
    from distreduce_paper import NAMES, Selection, load_experiment

    store, selection = _open_store(results, quick), Selection(quick=quick)
    rows = [_list_row(load_experiment(name), store, selection) for name in NAMES]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    Console().print(_list_table(rows, store.folder))


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
    """Run experiments. If a run is interrupted, the same command resumes it.

    A failing cell does not stop the others; the exit code is 1 as long as there are such cells.
    """
    store, selection = _open_store(results, quick), _select(datasets, methods, seeds, quick)
    _check_failures(_run(names, store, selection, jobs, dask, plugin, retry), store)


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
    """Run all experiments, then write the report; the exit code is 1 if cells have failed."""
    from distreduce_paper import NAMES

    store, selection = _open_store(results, quick), _select(datasets, methods, seeds, quick)
    cells = _run(NAMES, store, selection, jobs, dask, plugin, retry)
    # The report comes before the check: it shows the failures.
    _write_report(store, store.folder)
    _check_failures(cells, store)


@app.command()
def report(
    results: Results = None,
    quick: Quick = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the report. Default: the folder of the results.", show_default=False)
    ] = None,
    plugin: Plugin = None,
) -> None:
    """Write report.md, report.html and the figures from the stored results."""
    from distreduce_paper.plugins import load_plugins

    # Before the report, whose cells may be of data sets and methods of plugins.
    load_plugins(tuple(str(path) for path in plugin or ()))
    store = _open_store(results, quick)
    _write_report(store, out or store.folder)


def _open_store(results: Path | None, quick: bool) -> Store:
    from distreduce_paper.store import Store

    return Store(results or (QUICK_RESULTS if quick else RESULTS))


def _select(datasets: Sequence[str] | None, methods: Sequence[str] | None, seeds: int | None, quick: bool) -> Selection:
    from distreduce_paper import Selection

    return Selection(tuple(datasets) if datasets else None, tuple(methods) if methods else None, seeds, quick)


def _list_row(experiment: Experiment, store: Store, selection: Selection) -> dict[str, Any]:
    keys = {cell.key for cell in experiment.cells(selection)} if experiment.run else set()
    # Only cells of this selection: the store may hold others.
    done = keys & store.finished(experiment.name, also_failed=False)
    failed = (keys & store.finished(experiment.name)) - done
    return {
        "name": experiment.name,
        "rebuilds": experiment.paper or "not in the paper: " + experiment.title.lower(),
        "cells": len(keys),
        "sources": list(experiment.sources),
        "done": len(done),
        "failed": len(failed),
    }


def _list_table(rows: list[dict[str, Any]], folder: Path) -> Table:
    table = Table(
        title=Text(f"Cells in {folder}"), title_justify="left", title_style="", box=box.SIMPLE_HEAD, show_footer=True
    )
    table.add_column("experiment", "all", style="bold")
    table.add_column("rebuilds")
    for count in ("cells", "done", "failed"):
        table.add_column(count, str(sum(row[count] for row in rows)), justify="right")
    for row in rows:
        # An experiment without cells of its own is computed through its sources.
        source = "" if row["cells"] else f", from the cells of {' and '.join(row['sources'])}"
        done = Text(str(row["done"] or ""), style="green" if row["done"] == row["cells"] else "yellow")
        failed = Text(str(row["failed"] or ""), style="red")
        table.add_row(row["name"], Text(row["rebuilds"] + source), str(row["cells"] or ""), done, failed)
    return table


def _run(
    names: Sequence[str],
    store: Store,
    selection: Selection,
    jobs: int,
    dask: str | None,
    plugin: Sequence[Path] | None,
    retry: bool,
) -> list[Cell]:
    """Run the selected cells of the experiments and of their sources, and return these cells."""
    from distreduce_paper import runner
    from distreduce_paper.experiment import check_selection
    from distreduce_paper.plugins import load_plugins

    # Absolute paths, because workers may run in another folder.
    plugins = tuple(str(path.resolve()) for path in plugin or ())
    load_plugins(plugins)
    experiments = _load_with_sources(names)
    check_selection(selection, experiments)
    # Cells whose seconds matter come last and run one at a time.
    groups = {
        exclusive: [
            cell for one in experiments if one.run and one.exclusive == exclusive for cell in one.cells(selection)
        ]
        for exclusive in (False, True)
    }
    if not any(groups.values()):
        raise InvalidInputError("There is nothing to run: none of these methods goes with any of these data sets.")
    for exclusive, cells in groups.items():
        if not cells:
            continue
        with _show_progress(len(cells)) as show:
            counts = runner.run_cells(
                cells, store, jobs=1 if exclusive else jobs, dask=None if exclusive else dask,
                plugins=plugins, retry=retry, on_result=show,
            )  # fmt: skip
        typer.echo(
            f"{counts.requested} cells: {counts.stored} already stored, {counts.computed} computed, "
            f"{counts.failed} of these failed; results in {store.folder}"
        )
    return [cell for cells in groups.values() for cell in cells]


def _load_with_sources(names: Sequence[str]) -> list[Experiment]:
    """Load the experiments and those whose cells they show, each once."""
    from distreduce_paper import load_experiment

    experiments = [load_experiment(name) for name in names]
    # A dict drops repetitions and keeps the order, sources before those that show them.
    return [load_experiment(name) for name in dict.fromkeys(n for one in experiments for n in (*one.sources, one.name))]


def _check_failures(cells: Sequence[Cell], store: Store) -> None:
    """Raise if cells failed in this run or before: a script must not continue with half of its results."""
    asked: dict[str, set[str]] = {}
    for cell in cells:
        asked.setdefault(cell.experiment, set()).add(cell.key)
    # From the store and not from this run: earlier failures count as well.
    failed = {
        name: len(keys & store.finished(name) - store.finished(name, also_failed=False)) for name, keys in asked.items()
    }
    if any(failed.values()):
        files = ", ".join(str(store.path(name)) for name, count in failed.items() if count)
        raise FailedCellsError(
            f"{sum(failed.values())} of {sum(map(len, asked.values()))} cells have failed; their tracebacks are in "
            f'{files} (lines with "error"). The next run tries failed downloads again, and --retry all of them.'
        )


@contextmanager
def _show_progress(total: int) -> Iterator[Callable[[CellResult | None], None]]:
    """Show a bar with the time left, and each failure as soon as it happens."""
    from rich import progress

    from distreduce._utils.text import progress_bar
    from distreduce_paper import Cell

    columns = (
        progress.BarColumn(20),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
    )
    # Cells take from a second to an hour: only their mean over the whole run predicts the time left.
    with progress_bar(*columns, expand=True, transient=False, speed_estimate_period=math.inf) as bar:
        task = bar.add_task("", total=total)

        def show(result: CellResult | None) -> None:
            if result is None:  # stored before this run, so it says nothing about the speed
                bar.reset(task, completed=int(bar.tasks[task].completed) + 1)
                return
            bar.update(task, advance=1, description=f"{result['method']} on {result['data']}")
            if "error" in result:
                error = f"{result['error']['type']}: {result['error']['message']}"
                bar.console.print(Text(f"failed: {Cell.from_dict(result)}: {error}", style="red"), soft_wrap=True)

        yield show
        bar.update(task, description="")


def _write_report(store: Store, out: Path) -> None:
    from distreduce_paper import NAMES
    from distreduce_paper.report.write import write_report

    for path in write_report(store, out, NAMES):
        typer.echo(f"Wrote {path}")

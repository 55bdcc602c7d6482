"""``distreduce bench``: how fast the package is on this machine, beside the paper's algorithm and scikit-learn."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from distreduce_paper.bench import Outcome

BUSY = 0.5  # processes a core beside which seconds say little


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Three small cases instead of six.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="The table alone: no progress, no words about the machine.")
    ] = False,
) -> None:
    """Time fits on this machine, each beside a yardstick, with what both reached.

    Reductions stand beside the paper's algorithm, Gaussian processes beside
    scikit-learn's. Data come with scikit-learn or are drawn; nothing is
    downloaded and nothing is written. Takes about a minute on two cores.
    """
    from distreduce._utils.versions import available_cores, machine
    from distreduce.cli._screen import progress
    from distreduce_paper.bench import cases, compile_loops, load_average, run_cases
    from distreduce_paper.measure import versions

    chosen, load = cases(quick=quick), load_average()
    with progress(1 + sum(len(case.fits) for case in chosen), silent=quiet or as_json) as advance:
        advance("compiling")
        compilation = compile_loops()
        outcomes = list(run_cases(chosen, advance))
    if as_json:
        described = {"machine": machine(), "load": load, "versions": versions(), "compilation_seconds": compilation}
        results = [asdict(outcome) for outcome in outcomes]
        typer.echo(json.dumps({**described, "results": results}, indent=2, ensure_ascii=False))
        return
    Console().print(_table(outcomes))
    if not quiet:
        _describe(machine(), versions(), compilation)
        if load is not None and load > BUSY * available_cores():
            warning = f"Other programs kept the machine busy (load {load:.1f} at the start): seconds are too many."
            Console().print(Text(warning, style="yellow"))


def _table(outcomes: list[Outcome]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("fit", "by"):
        table.add_column(heading, overflow="fold")
    for heading in ("seconds", "×", "peak MB", "reached"):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in outcomes:
        for place, run in enumerate(outcome.runs):
            table.add_row(
                Text(outcome.case) if place == 0 else Text("{} × {}".format(*outcome.shape), style="dim"),
                Text(run.by, style="" if place else "bold"),
                f"{run.seconds:.2f}",
                f"{outcome.ratio:.1f}" if place else "",
                f"{run.peak_mb:.0f}",
                f"{outcome.measure} {run.reached:{'.3f' if outcome.measure == 'R²' else '.1f'}}",
                end_section=run is outcome.runs[-1],
            )
    return table


def _describe(machine: str, versions: dict[str, str], compilation: float) -> None:
    console = Console()
    words = (
        "×: how many times as long as ours. J: the objective, lower is better; it has many minima. R²: on a fifth held "
        f"out. Memory is that of the whole process. A first round for compilation ({compilation:.1f} s) is not counted."
    )
    console.print(Text(words))
    console.print(Text(f"{machine}; " + ", ".join(f"{name} {number}" for name, number in versions.items())))

"""``distreduce bench``: the speed of the package on this machine, next to the paper's algorithm and scikit-learn."""

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
    from distreduce_paper.bench import CaseResult

BUSY = 0.5  # load per core above which seconds mean little
LEGEND = """\
×: seconds divided by ours. J: the objective, lower is better; it has many minima. R²: on a held-out fifth. Memory is \
that of the whole process. A first round for compilation ({:.1f} s) is not counted."""


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Three small cases instead of six.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only the table: no progress, nothing about the machine.")
    ] = False,
) -> None:
    """Time fits on this machine, each next to a reference, with the score of both.

    The reference for a reduction is the paper's algorithm, for a Gaussian
    process scikit-learn's. Data come with scikit-learn or are generated;
    nothing is downloaded or written. Takes about a minute on two cores.
    """
    # Imported here, so that `distreduce --help` stays fast.
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    from distreduce._utils.text import progress_bar
    from distreduce._utils.threads import available_cores
    from distreduce_paper import bench as cases
    from distreduce_paper.measure import describe_machine, package_versions

    # The load before our own fits: afterwards it would be ours.
    chosen, load = cases.make_cases(quick=quick), cases.load_average()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TimeElapsedColumn())
    with progress_bar(*columns, visible=not (quiet or as_json)) as bar:
        task = bar.add_task("compiling", total=1 + sum(len(case.fits) for case in chosen))
        compilation = cases.compile_loops()
        results = list(cases.run_cases(chosen, lambda text: bar.update(task, description=text, advance=1)))
    machine, versions = describe_machine(), package_versions()
    if as_json:
        about = {"machine": machine, "load": load, "versions": versions, "compilation_seconds": compilation}
        content = {**about, "results": [asdict(result) for result in results]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(_table(results))
    if not quiet:
        console.print(Text(LEGEND.format(compilation)))
        console.print(Text(f"{machine}; " + ", ".join(f"{name} {number}" for name, number in versions.items())))
        if load is not None and load > BUSY * available_cores():
            warning = f"Other programs kept the machine busy (load {load:.1f} at the start): the seconds are too high."
            console.print(Text(warning, style="yellow"))


def _table(results: list[CaseResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("fit", "by"):
        table.add_column(heading, overflow="fold")
    for heading in ("seconds", "×", "peak MB", "score"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        for place, timing in enumerate(result.timings):
            table.add_row(
                Text(result.case) if place == 0 else Text("{} × {}".format(*result.shape), style="dim"),
                Text(timing.method, style="" if place else "bold"),
                f"{timing.seconds:.2f}",
                f"{result.ratio:.1f}" if place else "",
                f"{timing.peak_mb:.0f}",
                f"{result.score} {timing.value:{'.3f' if result.score == 'R²' else '.1f'}}",
                end_section=timing is result.timings[-1],
            )
    return table

"""Ours against the straightforward pipeline: one table, on screen and as core.json and core.md; see README.md."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from growth import FULL, QUICK, growth
from problems import COIL_SIZE, Labelled, coil20, mixture
from report import Row, machine, save, show
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from steps import affinity, coupling_step, embedding_step, warm_up
from whole_fit import whole_fit

from distreduce._utils.threads import effective_threads

Job = Callable[[Callable[[str], None]], list[Row]]
PARTS = (1, 2, 3, 4, 5)


def jobs(options: argparse.Namespace, data: Labelled) -> dict[str, Job]:
    """Return the jobs of the chosen parts, by the text that is shown while they run."""
    threads, quick = options.threads, options.quick
    m = 40 if quick else 100
    chosen: dict[str, Job] = {}
    if 1 in options.parts:
        for size in (100, 400) if quick else (100, 400, 1600):
            # `size=size` binds the value now: the jobs run after the loop.
            chosen[f"embedding step, m={size}"] = lambda _, size=size: embedding_step(size, threads)
    if 2 in options.parts:
        chosen[f"affinity, {data.name}"] = lambda _: affinity(data, threads)
        # The number of steps depends on the data: a second set of the same size.
        if "COIL" in data.name and not quick:
            chosen["affinity, synthetic"] = lambda _: affinity(mixture(len(data.X)), threads)
    if 3 in options.parts:
        chosen[f"coupling step, {data.name}"] = lambda _: coupling_step(data, m, threads)
    if 4 in options.parts:
        chosen[f"whole fit, {data.name}"] = lambda _: whole_fit(data, m, threads, quick)
    if 5 in options.parts:
        chosen["growth"] = lambda advance: growth(QUICK if quick else FULL, threads, advance)
    return chosen


def run(options: argparse.Namespace, data: Labelled, console: Console, about: dict[str, Any]) -> list[Row]:
    """Run all jobs and return their rows; they are saved after every job, because a run takes long."""
    rows: list[Row] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("compiling", total=None)
        warm_up(options.threads)  # so that no measurement includes compilation
        for name, job in jobs(options, data).items():
            progress.update(task, description=name)
            rows += job(lambda text: progress.update(task, description=text))
            save(rows, about, options.out)
    return rows


def remarks(options: argparse.Namespace, data: Labelled) -> str:
    """Describe how the numbers were measured."""
    missing = "" if "COIL" in data.name else " No COIL-20 (--data): synthetic data of its size in its place."
    quick = " A quick run at reduced sizes." if options.quick else ""
    return (
        "Steps and our affinity: the median of several calls after one that is not counted, Numba's compilation "
        "excluded; the yardstick's affinities and whole fits: one run. The yardstick has one thread or all, whichever "
        "is faster for it. J and BSFGW of both are distreduce's own evaluation." + missing + quick
    )


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    # The same variable that the datasets of the package use.
    folder = os.environ.get("DISTREDUCE_DATA")
    parser.add_argument("--quick", action="store_true", help="about a minute, at smaller sizes")
    parser.add_argument("--threads", type=int, default=effective_threads(None), help="for ours and the yardstick")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None, help="folder with coil20.npz")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "benchmarks")
    parser.add_argument("--parts", type=int, nargs="+", choices=PARTS, default=PARTS, help="parts of the table to run")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Measure all rows, show them and save them."""
    options, console = parse(arguments), Console()
    data = coil20(options.data, 400 if options.quick else COIL_SIZE)
    about = {"machine": machine(options.threads), "remarks": remarks(options, data)}
    rows = run(options, data, console, about)
    show(rows, console)
    console.print(about["remarks"])
    console.print(f"written: {options.out / 'core.json'}, {options.out / 'core.md'}")


if __name__ == "__main__":
    main()

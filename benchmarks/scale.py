"""How the time of a fit grows with the samples: SDR sparse and dense, the paper's algorithm, UMAP; see README.md.

Each point runs in its own process. Finished points are stored in scale.jsonl, and the same command resumes a run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from scale_child import Limits, PointError, is_final, measure_apart
from scale_points import DENSE, PAPER, SPARSE, UMAP, measure_point

from distreduce._utils.threads import effective_threads
from distreduce_paper import Cell, problems
from distreduce_paper.store import CellResult, Store

NAME = "scale"
PARTS = ("fashion", "mixtures", "memory")
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZE = 10_000
N_PROTOTYPES, FASHION_ROWS = 200, 10_000
PERPLEXITY = 30.0  # of the mixtures, SDR's default
# Ours is measured for as long as anybody would wait.
OUR_SECONDS = 3600.0


def fashion(seeds: int, threads: int) -> list[Cell]:
    """Return sparse and dense fits of Fashion-MNIST, with the perplexity of the experiments."""
    perplexity = problems.get_problem("fashion").perplexity
    return [
        _cell("fashion", method, seed, FASHION_ROWS, perplexity, threads)
        for seed in range(seeds)
        for method in (SPARSE, DENSE)
    ]


def mixtures(sizes: Sequence[int], threads: int) -> list[Cell]:
    """Return all methods at growing sizes; the dense one only where it is the default."""
    return [
        _cell("mixture", method, 0, n, PERPLEXITY, threads)
        for n in sorted(sizes)
        for method in (SPARSE, DENSE, UMAP, PAPER)
        if method != DENSE or n <= FASHION_ROWS
    ]


def _cell(data: str, method: str, seed: int, n: int, perplexity: float, threads: int) -> Cell:
    parameters = {"n": n, "m": N_PROTOTYPES, "perplexity": perplexity, "threads": threads}
    return Cell(NAME, data, method, seed, parameters)


def plan_cells(options: argparse.Namespace) -> list[Cell]:
    """Return the cells that the options ask for; "memory" is one point, at the largest size."""
    # A quick run keeps small sizes, or takes one if there are none.
    sizes = [n for n in options.sizes if n <= QUICK_SIZE] or [QUICK_SIZE] if options.quick else options.sizes
    cells: list[Cell] = []
    if "fashion" in options.only:
        cells += fashion(1 if options.quick else options.seeds, options.threads)
    if "mixtures" in options.only:
        cells += mixtures(sizes, options.threads)
    # The mixtures include that point already.
    elif "memory" in options.only:
        cells.append(_cell("mixture", SPARSE, 0, max(sizes), PERPLEXITY, options.threads))
    return cells


def run(cells: Sequence[Cell], limits: Limits, store: Store, console: Console) -> None:
    """Measure the points that are not stored; a method that exceeded a limit is not run on more samples."""
    stopped: set[tuple[str, str]] = set()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with store.writing(NAME), Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(cells))
        for cell in cells:
            n = cell.parameters["n"]
            progress.update(task, description=f"{cell.method} on {cell.data}, n={n:,}, seed {cell.seed}")
            # Cells come by increasing size: once over a limit, always over it.
            if (cell.data, cell.method) not in stopped:
                try:
                    ended = "error" not in load_or_measure(cell, limits, store)
                except PointError as error:  # not stored: the same command tries again
                    ended = False
                    progress.console.print(str(error), style="red", markup=False)
                if not ended:
                    stopped.add((cell.data, cell.method))
            progress.advance(task)


def load_or_measure(cell: Cell, limits: Limits, store: Store) -> CellResult:
    """Return the result of a cell, from the store if possible; a new one is stored."""
    own = Limits(max(limits.seconds, OUR_SECONDS), limits.gigabytes) if cell.method == SPARSE else limits
    for result in store.results(NAME):
        if Cell.from_dict(result).key == cell.key and is_final(result, own):
            return result
    result = measure_apart(cell, own)
    store.add(result)
    return result


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run; by default all")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="samples of the mixtures")
    parser.add_argument("--seeds", type=int, default=5, help="fits to Fashion-MNIST of either kind")
    parser.add_argument("--quick", action="store_true", help=f"mixtures up to {QUICK_SIZE:,} samples, one seed")
    parser.add_argument("--report", action="store_true", help="only rebuild scale.md and scale.svg")
    parser.add_argument("--threads", type=int, default=effective_threads(None), help="for all methods")
    parser.add_argument("--limit", type=float, default=900.0, help="largest seconds of a fit other than the sparse one")
    parser.add_argument("--memory-limit", type=float, default=16.0, help="largest gigabytes of any fit")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "benchmarks")
    parser.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)  # used when this program starts itself
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Measure, save, report."""
    options, console = parse(arguments), Console(stderr=True)
    if options.point is not None:
        print(json.dumps(measure_point(Cell.from_dict(options.point), options.limit)))
        return
    from scale_report import save  # imports torch, which a point must not load

    store = Store(options.out)
    if not options.report:
        run(plan_cells(options), Limits(options.limit, options.memory_limit), store, console)
    for path in save(store.results(NAME), options.out):
        console.print(f"written: {path}")


if __name__ == "__main__":
    main()

"""Seconds of fit plus GP, ours next to DKL and NCA-GP, in one run on one machine; see README.md.

python benchmarks/gp.py                      # five sets, five seeds
python benchmarks/gp.py --seeds 1 --datasets boston energy
"""

from __future__ import annotations

import argparse
import warnings
from statistics import mean, pstdev

from rich.console import Console
from rich.table import Table

from distreduce_paper import Cell
from distreduce_paper.experiments._prediction import CLASSIFICATION, REGRESSION
from distreduce_paper.experiments.runtimes import time_fit

METHODS = ("SDR-GP", "NCA-GP", "DKL")


def main() -> None:
    """Time every method on every set, and print means and deviations over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--datasets", nargs="+", default=[*REGRESSION, *CLASSIFICATION])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # training that reaches its iteration limit is timed as well
    table = Table("seconds", *METHODS, title="Fit plus GP: mean ± deviation over the splits")
    for data in options.datasets:
        # The cells of the paper's table of training times, timed the same way but not stored.
        cells = [[Cell("runtimes", data, method, seed, {}) for seed in range(options.seeds)] for method in METHODS]
        seconds = [[float(time_fit(cell)["fit_seconds"]) for cell in row] for row in cells]
        table.add_row(data, *(f"{mean(row):.2f} ± {pstdev(row):.2f}" for row in seconds))
    Console().print(table)


if __name__ == "__main__":
    main()

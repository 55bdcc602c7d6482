"""Seconds of CPU that a user waits before and in the first fit, in fresh processes with an empty cache of Numba's.

Writes ``cold_start.md``; `--check` fails if a first fit on iris takes 3 s more than the second one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Two fits in one process, and how often Numba compiled during each; a compilation inside another counts once.
FITS = """
import json, time
import numba.core.event as events
import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_iris
from distreduce import SDR, SDRGPClassifier, SDRGPRegressor
X, y = {data}
record = []
for _ in range(2):
    with events.install_recorder("numba:compile") as compiled:
        began = time.process_time()
        {model}.fit(X, np.ravel(y))
        record.append((time.process_time() - began, sum(event.is_start for _, event in compiled.buffer)))
print(json.dumps(record))
"""
IRIS, DIGITS = "load_iris(return_X_y=True)", "load_digits(return_X_y=True)"
DIABETES, PETALS = "load_diabetes(return_X_y=True)", "np.split(load_iris().data, [3], axis=1)"
CASES = {
    "`SDR()`, iris": (IRIS, "SDR(random_state=0)"),
    "`SDR(n_prototypes=10)`, iris": (IRIS, "SDR(n_prototypes=10, random_state=0)"),
    "`SDRGPClassifier()`, iris": (IRIS, "SDRGPClassifier(random_state=0)"),
    "`SDRGPRegressor()`, petal width of iris": (PETALS, "SDRGPRegressor(random_state=0)"),
    "`SDR()`, diabetes": (DIABETES, "SDR(random_state=0)"),
    "`SDR(n_prototypes=60)`, digits": (DIGITS, "SDR(n_prototypes=60, random_state=0)"),
}
COMMANDS = {
    "`import sklearn.base, sklearn.neighbors`": ["-c", "import sklearn.base, sklearn.neighbors"],
    "`import distreduce`": ["-c", "import distreduce"],
    "`from distreduce import SDR`": ["-c", "from distreduce import SDR"],
    "`distreduce --help`": ["-m", "distreduce.cli", "--help"],
    "`distreduce fit --nonsense`": ["-m", "distreduce.cli", "fit", "--nonsense"],
    "`distreduce fit missing.csv`": ["-m", "distreduce.cli", "fit", "missing.csv"],
}
LIMIT = 3.0  # seconds that the first fit on iris may take more than the second


def run(arguments: list[str], cache: str) -> tuple[str, float]:
    """Return what a new Python prints, and its CPU seconds."""
    before = os.times()
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, seconds


def measure_fits(data: str, model: str) -> list[list[float]]:
    """(CPU seconds, compilations) of two fits in a process with an empty cache, and of one in the next process."""
    code = FITS.format(data=data, model=model)
    with tempfile.TemporaryDirectory() as cache:
        cold, again = (json.loads(run(["-c", code], cache)[0]) for _ in range(2))
    return [*cold, again[0]]


def main() -> None:
    """Measure, write the table, and check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only iris, and fail above the limit")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    options = parser.parse_args()
    lines = [
        "# Cold start\n",
        "`python benchmarks/cold_start.py`: CPU seconds on one core. First and second fit in a new process whose",
        "Numba cache is empty, then the first fit of the next process. In brackets: compilations.\n",
        "| fit | first | second | first of the next process | first − second |\n|---|---|---|---|---|",
    ]
    late = []
    for name, case in list(CASES.items())[: 2 if options.check else None]:
        first, second, later = measure_fits(*case)
        cells = " | ".join(f"{seconds:.2f} ({int(n)})" for seconds, n in (first, second, later))
        lines.append(f"| {name} | {cells} | {first[0] - second[0]:.2f} |")
        print(lines[-1], flush=True)
        late += [name] if "iris" in name and "GP" not in name and first[0] - second[0] > LIMIT else []
    if options.check:
        sys.exit(f"over {LIMIT:g} s: {', '.join(late)}" if late else 0)
    lines.append("\n| command | CPU seconds |\n|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for name, arguments in COMMANDS.items():
            lines.append(f"| {name} | {min(run(arguments, cache)[1] for _ in range(3)):.2f} |")
            print(lines[-1], flush=True)
    (options.out / "cold_start.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

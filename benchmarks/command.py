"""Wall and CPU seconds of ``distreduce fit`` on tables of 20 columns, step by step, and how right its time left is.

Each command runs in a process of its own, on all cores. Results are appended to results/benchmarks/command.jsonl under
`--label`, and command.md shows all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification, make_friedman1

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"
FEATURES = 19  # numbers; the twentieth column is text
# The command, with what the bar would show at the start of each step written to a file.
CODE = """
import json, sys, time
from distreduce.cli import _screen, main
from contextlib import contextmanager
shown, began = [], time.perf_counter()
@contextmanager
def progress(steps, silent):
    start = time.perf_counter()
    def advance(words):
        now, done = time.perf_counter() - start, sum(list(steps.values())[: list(steps).index(words)])
        shown.append((words, time.perf_counter() - began, _screen.predict_left(done, sum(steps.values()), now, now)))
    yield advance
_screen.progress = progress
log = sys.argv.pop()
try:
    main.main()
finally:
    shown.append(("end", time.perf_counter() - began, None))
    open(log, "w").write(json.dumps(shown))
"""


def make_table(kind: str, rows: int) -> pd.DataFrame:
    """Friedman #1 or three classes with 5 % of labels exchanged, and a text column that follows the fourth number."""
    if kind == "numbers":
        X, y = make_friedman1(rows, n_features=FEATURES, noise=1.0, random_state=0)
    else:
        X, y = make_classification(
            rows, n_features=FEATURES, n_informative=6, n_redundant=4, n_classes=3, flip_y=0.05, random_state=0
        )
        y = np.array(["a", "b", "c"])[y]
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(FEATURES)])
    noisy = X[:, 3] + 0.3 * np.random.default_rng(0).standard_normal(rows)
    table["level"] = np.array(["low", "mid", "high", "top"])[
        np.digitize(noisy, np.quantile(X[:, 3], [0.25, 0.5, 0.75]))
    ]
    return table.assign(target=y)


def measure(kind: str, rows: int, label: str) -> dict[str, object]:
    """Run the command once."""
    with tempfile.TemporaryDirectory() as folder:
        file, out, log = (str(Path(folder, name)) for name in ("table.csv", "out", "log.json"))
        make_table(kind, rows).to_csv(file, index=False)
        before, began = os.times(), time.perf_counter()
        arguments = ["fit", file, "--target", "target", "--out", out, "--quiet", log]
        subprocess.run([sys.executable, "-c", CODE, *arguments], check=True)
        wall, after = time.perf_counter() - began, os.times()
        metrics = json.loads(Path(out, "metrics.json").read_text())
        shown = json.loads(Path(log).read_text())
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    steps = {name: end[1] - at for (name, at, _), end in zip(shown, shown[1:], strict=False)}
    left = {name: (said, shown[-1][1] - at) for name, at, said in shown if said is not None}
    scores = metrics["held_out"]["scores"]["SDR-GP"]
    return {"label": label, "kind": kind, "rows": rows, "cores": len(os.sched_getaffinity(0)), "wall": wall, "cpu": cpu,
            "steps": steps, "left": left, "score": scores.get("mll", scores.get("mlp"))}  # fmt: skip


def write(records: list[dict[str, object]]) -> str:
    """One line per record."""
    lines = [
        "# `distreduce fit`, end to end\n",
        "`python benchmarks/command.py`: tables of 20 columns, one of them text. Seconds of wall clock, CPU seconds in "
        "brackets, and the longest steps. Ratio: the time left that the bar shows at the start of a step over what it "
        "took, least and greatest, where more than 2 s were left. Score: held-out log density or probability.\n",
        "| version | table | rows | cores | seconds | steps | ratio | score |\n|---|---|---|---|---|---|---|---|",
    ]
    for r in records:
        steps = ", ".join(f"{name} {s:.1f}" for name, s in r["steps"].items() if s >= 0.5)  # type: ignore[attr-defined]
        ratios = [said / true for said, true in r["left"].values() if true > 2]  # type: ignore[attr-defined]
        ratio = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "–"
        lines.append(
            f"| {r['label']} | {r['kind']} | {r['rows']} | {r['cores']} | {r['wall']:.1f} ({r['cpu']:.1f}) | {steps} "
            f"| {ratio} | {r['score']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, append, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--label", default="now", help="name of the version in the table")
    parser.add_argument("--rows", type=int, nargs="+", default=[2000])
    parser.add_argument("--kinds", nargs="+", default=["numbers", "classes"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    log = options.out / "command.jsonl"
    for rows in options.rows:
        for kind in options.kinds:
            record = measure(kind, rows, options.label)
            print(json.dumps(record), flush=True)
            with log.open("a") as file:
                file.write(json.dumps(record) + "\n")
    (options.out / "command.md").write_text(write([json.loads(line) for line in log.read_text().splitlines()]))


if __name__ == "__main__":
    main()

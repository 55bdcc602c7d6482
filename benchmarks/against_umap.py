"""SDR, its paper's constants and supervised umap-learn on the mixtures of scale.py: seconds, and new samples.

Each point is a process of its own that uses all cores it may. New samples are placed by `transform`; the score is the
accuracy of their ten nearest training samples in the plane, for SDR among left-out places (`embedding_left_out_`).
Results are appended to results/benchmarks/against_umap.jsonl, which the same command resumes, and against_umap.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from scale_points import UMAP, mixture
from sklearn.neighbors import KNeighborsClassifier

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"
SIZES, NEW, PROTOTYPES = (1000, 3000, 10_000, 30_000, 100_000), 2000, 200
OURS, PAPER = "SDR", "SDR.paper"
WARM_UP = {
    OURS: 0,
    PAPER: 0,
    UMAP: 5000,
}  # umap-learn has two searches for neighbours; 0 is as many samples as will be fitted


def make_model(method: str) -> Any:
    """Defaults of both, but for the number of prototypes; umap-learn gets no seed, with which it uses one core."""
    if method == UMAP:
        import umap

        return umap.UMAP(target_metric="categorical")
    from distreduce import SDR

    return (SDR.paper if method == PAPER else SDR)(n_prototypes=PROTOTYPES, random_state=0)


def measure(method: str, n: int) -> dict[str, Any]:
    """Fit once to warm up and once for the seconds; then place new samples."""
    warnings.simplefilter("ignore")
    X, y = mixture(n + NEW, seed=0)
    few = min(WARM_UP[method], n) or min(n, 12_000)
    make_model(method).fit(X[:few], y[:few])
    began, cpu = time.perf_counter(), time.process_time()
    model = make_model(method).fit(X[:n], y[:n])
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    known = model.embedding_ if method == UMAP else getattr(model, "embedding_left_out_", None)
    places = model.embedding_ if known is None else known
    neighbours = KNeighborsClassifier(10).fit(places, y[:n])
    score = neighbours.score(model.transform(X[n:]), y[n:])
    return {"method": method, "n": n, "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
            "seconds": seconds, "cpu": cpu, "accuracy": float(score)}  # fmt: skip


def write(records: list[dict[str, Any]]) -> str:
    """One line per size."""
    lines = [
        "# SDR and supervised UMAP\n",
        f"`python benchmarks/against_umap.py`: mixtures of scale.md, {PROTOTYPES} prototypes, else defaults; seconds "
        "of wall clock of a second, warm fit (CPU seconds, from which the ratios are), and accuracy of ten nearest "
        "neighbours in the plane for "
        f"{NEW:,} new samples.\n",
        "| n | cores | SDR | SDR.paper | UMAP | SDR / paper | UMAP / SDR | accuracy of each |",
        "|---|---|---|---|---|---|---|---|",
    ]
    found = {(r["method"], r["n"]): r for r in records}
    for n in sorted({n for _, n in found}):
        if all((method, n) in found for method in WARM_UP):
            points = [found[method, n] for method in WARM_UP]
            cells = " | ".join(f"{r['seconds']:.1f} ({r['cpu']:.1f})" for r in points)
            # CPU seconds: the clock also counts what else the machine does.
            ours, paper, umap = (r["cpu"] for r in points)
            scores = ", ".join(f"{r['accuracy']:.3f}" for r in points)
            lines.append(
                f"| {n:,} | {points[0]['cores']} | {cells} | {ours / paper:.2f} | {umap / ours:.2f} | {scores} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is not stored, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(options.point[0], int(options.point[1]))))
        return
    log = options.out / "against_umap.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for n in options.sizes:
        for method in WARM_UP:
            if not any((r["method"], r["n"]) == (method, n) for r in records):
                command = [sys.executable, __file__, "--point", method, str(n)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                records.append(json.loads(output.splitlines()[-1]))
                print(json.dumps(records[-1]), flush=True)
                with log.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    (options.out / "against_umap.md").write_text(write(records))


if __name__ == "__main__":
    main()

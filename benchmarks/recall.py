"""What the recall of the graph of neighbours does to a fit: new samples in the plane, and CPU seconds.

SDR is fitted to 100,000 samples of scale.py's mixture with fewer and more candidates per sample in the search for
neighbours, up to all samples, which is the exact graph. New samples are placed by `transform`; the score is the
accuracy of their ten nearest training samples among left-out places. Each point is a process with one thread.
Results are appended to results/benchmarks/recall.jsonl, which the same command resumes, and recall.md.
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
from unittest.mock import patch

from against_umap import ONE_THREAD, PROTOTYPES, RESULTS
from scale_points import Watch, in_metric, mixture
from sklearn.neighbors import KNeighborsClassifier

from distreduce import SDR
from distreduce.sharding import cells
from distreduce.sharding.rows import Rows
from distreduce.solver import sharded

CANDIDATES = (500, 2000, 8000, 32_000, 100_000)
SAMPLES, NEW = 100_000, 10_000


def measure(candidates: int, n: int, seed: int) -> dict[str, Any]:
    """Fit once to warm up and once for the seconds; then place new samples."""
    warnings.simplefilter("ignore")
    cells.SEARCHED_ROWS = candidates
    model, watch = SDR(n_prototypes=PROTOTYPES, random_state=seed, n_jobs=1), Watch()
    SDR(n_prototypes=PROTOTYPES, max_iter=2, n_jobs=1, affinity="sparse").fit(*mixture(4100, seed=1))
    X, y = mixture(n + NEW, seed)
    arrange = patch.object(Rows, "arrange", lambda rows, *given: watch.arrange(rows, *given))
    with arrange, patch.object(sharded, "keep_neighbours", watch.keep_neighbours):
        cpu = time.process_time()
        model.fit(X[:n], y[:n])
        cpu = time.process_time() - cpu - watch.own_seconds
    placed = KNeighborsClassifier(10).fit(model.embedding_left_out_, y[:n])
    return {
        "candidates": candidates, "n": n, "seed": seed, "recall": watch.recall(in_metric(model, X[:n])), "cpu": cpu,
        "accuracy": float(placed.score(model.transform(X[n:]), y[n:])),
        "load": os.getloadavg()[0],
    }  # fmt: skip


def write(records: list[dict[str, Any]]) -> str:
    """One line per size, seed and number of candidates."""
    lines = [
        "# Recall of the graph and held-out accuracy\n",
        f"`python benchmarks/recall.py`: mixture of scale.md, {PROTOTYPES} prototypes, else defaults, one thread. "
        "*Candidates* are the samples that each is compared with in the search for its neighbours (SEARCHED_ROWS). "
        "*Recall* is the share of true neighbours in the graph, *accuracy* that of ten nearest neighbours in the plane "
        f"for {NEW:,} new samples (standard error 0.005).\n",
        "| n | seed | candidates | recall | CPU seconds of the fit | accuracy |",
        "|---|---|---|---|---|---|",
    ]
    for r in sorted(records, key=lambda r: (r["n"], r["seed"], r["candidates"])):
        lines.append(
            f"| {r['n']:,} | {r['seed']} | {r['candidates']:,} | {r['recall']:.3f} "
            f"| {r['cpu']:.0f} | {r['accuracy']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is not stored, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, nargs="+", default=CANDIDATES)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--point", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(*options.point)))
        return
    log = options.out / "recall.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    points = [(candidates, options.samples, seed) for seed in options.seeds for candidates in options.candidates]
    for point in points:
        if any((r["candidates"], r["n"], r["seed"]) == point for r in records):
            continue
        command = [sys.executable, __file__, "--point", *map(str, point)]
        child = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD)
        records.append(json.loads(child.stdout.splitlines()[-1]))
        print(json.dumps(records[-1]), flush=True)
        with log.open("a") as file:
            file.write(json.dumps(records[-1]) + "\n")
    (options.out / "recall.md").write_text(write(records))


if __name__ == "__main__":
    main()

"""SDR, with 100 prototypes and plain, its paper's constants, and supervised umap-learn: CPU seconds, new samples.

Each point is a process of its own with one thread; UMAP gets `n_jobs=1` and one thread of Numba. A first fit, to few
samples, warms up and does not count. New samples are placed by `transform`; the score is the accuracy of their ten
nearest training samples in the plane, for SDR among left-out places (`embedding_left_out_`). The methods of one size
run one after the other, so that their ratios are those of one machine in one state. Results are appended to
results/benchmarks/against_umap.jsonl, which the same command resumes, against_umap.md, and against_umap.svg, which
shows where the time of SDR goes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
from scale_points import UMAP, mixture
from sklearn.neighbors import KNeighborsClassifier

from distreduce_paper import problems
from distreduce_paper.report.drawing import add_legend, draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"
SIZES = {"mixture": (1000, 3000, 10_000, 30_000, 100_000), "fashion": (1000, 3000, 8000)}
NEW, PROTOTYPES = 2000, 100
OURS, PLAIN, PAPER = "SDR", "SDR()", "SDR.paper"
METHODS = (OURS, PLAIN, PAPER, UMAP)
# Few samples of each kind that compile something of their own: umap-learn has two searches for neighbours, and SDR
# shards from 3,000 samples on (with the paper's constants single precision from 4,000 and shards from 10,000).
WARM_UPS = (1000, 3100, 4100, 10_100)
# Stages of a fit in the order of the chart, with colours of Okabe and Ito.
STAGES = {
    "metric and ridge": "#E69F00",
    "class predictions": "#F0E442",
    "neighbours": "#56B4E9",
    "affinity": "#0072B2",
    "start": "#999999",
    "map": "#009E73",
    "T-steps": "#D55E00",
    "Z-steps": "#CC79A7",
    "places and the rest": "#444444",
}
ONE_THREAD = {name: "1" for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


def load(data: str, n: int) -> tuple[Any, Any]:
    """Return n training samples and then `NEW` others: a mixture, or images by their 50 principal components."""
    if data == "mixture":
        return mixture(n + NEW, seed=0)
    X, y = problems.load_whole("fashion", 0)
    rows = np.random.default_rng(0).permutation(len(y))[: n + NEW]
    return X[rows], y[rows]


def make_model(method: str) -> Any:
    """Defaults of all, but for the number of threads and, unless plain, of prototypes; umap-learn needs no seed."""
    if method == UMAP:
        import umap

        return umap.UMAP(target_metric="categorical", n_jobs=1)
    from distreduce import SDR

    m = None if method == PLAIN else PROTOTYPES
    return (SDR.paper if method == PAPER else SDR)(n_prototypes=m, random_state=0, n_jobs=1)


def measure(method: str, data: str, n: int) -> dict[str, Any]:
    """Fit once to warm up and once for the seconds; then place new samples."""
    warnings.simplefilter("ignore")
    few = max(size for size in WARM_UPS if size == WARM_UPS[0] or size < n)
    warm = make_model(method)
    if method != UMAP:
        warm.set_params(max_iter=2)
    warm.fit(*mixture(few, seed=1))
    X, y = load(data, n)
    cpu = time.process_time()
    stages = Stages()
    model = make_model(method).fit(X[:n], y[:n]) if method == UMAP else stages.fit(make_model(method), X[:n], y[:n])
    cpu = time.process_time() - cpu
    known = model.embedding_ if method == UMAP else getattr(model, "embedding_left_out_", None)
    places = model.embedding_ if known is None else known
    score = KNeighborsClassifier(10).fit(places, y[:n]).score(model.transform(X[n:]), y[n:])
    found = {"method": method, "data": data, "n": n, "cpu": cpu, "accuracy": float(score)}
    if method != UMAP:
        found["stages"] = {name: round(seconds, 3) for name, seconds in stages.seconds.items()}
    return found | {"load": os.getloadavg()[0]}


class Stages:
    """CPU seconds of the stages of a fit, measured around the functions that make them up; the innermost one counts."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._at, self._names = time.process_time(), ["places and the rest"]

    def _tick(self) -> None:
        now = time.process_time()
        self.seconds[self._names[-1]] += now - self._at
        self._at = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function as it counts for a stage."""

        def call(*args: Any, **options: Any) -> Any:
            self._tick()
            self._names.append(name)
            try:
                return function(*args, **options)
            finally:
                self._tick()
                self._names.pop()

        return call

    def enter(self, name: str) -> None:
        """Count what follows in the current function for a stage."""
        self._tick()
        if name in STAGES:  # "first embedding" comes after the last function of the preparation
            self._names[-1] = name

    def fit(self, model: Any, X: Any, y: Any) -> Any:
        """Fit, and return the model."""
        from distreduce.estimators import _base, _expected, _setup
        from distreduce.solver import loop, objective

        places = {
            (_base, "set_up_fit"): "metric and ridge",
            (_setup, "predict_on_shards"): "class predictions",
            (_expected, "regress_targets"): "class predictions",
            (objective.Steps, "t_step"): "T-steps",
            (objective.Steps, "z_step"): "Z-steps",
        }
        with ExitStack() as stack:
            for (place, name), stage in places.items():
                stack.enter_context(patch.object(place, name, self.timed(stage, getattr(place, name))))
            for name in ("prepare_sharded", "prepare_dense"):
                whole = getattr(loop, name)
                announced = self.timed("map", lambda *args, whole=whole: whole(*args[:3], self.enter))
                stack.enter_context(patch.object(loop, name, announced))
            self._at = time.process_time()
            model.fit(X, y)
        self._tick()
        return model


def draw(figure: Figure, records: list[dict[str, Any]]) -> None:
    """Draw a bar per size with the stages of SDR on each other, and a line at the time of UMAP."""
    panels = figure.subplots(1, len(SIZES), width_ratios=[len(sizes) for sizes in SIZES.values()], sharey=True)
    found = {(r["data"], r["n"], r["method"]): r for r in records}
    for ax, data in zip(panels, SIZES, strict=True):
        sizes = sorted(n for name, n, method in found if name == data and method == OURS)
        bottom = np.zeros(len(sizes))
        for stage, colour in STAGES.items():
            height = np.array([1000 * found[data, n, OURS].get("stages", {}).get(stage, 0.0) / n for n in sizes])
            ax.bar(range(len(sizes)), height, 0.62, bottom, color=colour, label=stage, linewidth=0)
            bottom += height
        for place, n in enumerate(sizes):
            other = found.get((data, n, UMAP))
            if other is not None:
                level = 1000 * other["cpu"] / n
                ax.plot([place - 0.42, place + 0.42], [level, level], color="black", linewidth=2, label="UMAP, all")
        ax.set_xticks(range(len(sizes)), [f"{n:,}" for n in sizes])
        ax.set(title={"mixture": "mixture", "fashion": "Fashion-MNIST"}[data], xlabel="samples n")
        ax.grid(axis="x", visible=False)
    panels[0].set_ylabel("CPU milliseconds per sample")
    add_legend(figure, columns=4)


def write(records: list[dict[str, Any]]) -> str:
    """One line per data set and size."""
    lines = [
        "# SDR and supervised UMAP\n",
        "`python benchmarks/against_umap.py`: mixtures of scale.md and Fashion-MNIST (50 principal components), "
        f"{PROTOTYPES} prototypes, else defaults (*SDR()* has as many prototypes as samples, above 3,000 samples 200); "
        "CPU seconds of one thread of a warm fit, and accuracy of ten nearest neighbours in the plane for "
        f"{NEW:,} new samples. *Load* is the largest load average after a fit: other "
        "programs ran beside these, which slows all of them.\n",
        "| data | n | SDR | SDR() | SDR.paper | UMAP | SDR / UMAP | SDR() / UMAP | accuracy of the four | load |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    found = {(r["data"], r["n"], r["method"]): r for r in records}
    for data, n in sorted({key[:2] for key in found}):
        points = [found.get((data, n, method)) for method in METHODS]
        ours, plain, _, umap = (None if r is None else r["cpu"] for r in points)
        cells = [" " if r is None else f"{r['cpu']:.1f}" for r in points]
        cells += [f"{seconds / umap:.2f}" if seconds and umap else " " for seconds in (ours, plain)]
        scores = ", ".join("–" if r is None else f"{r['accuracy']:.3f}" for r in points)
        highest = max(r["load"] for r in points if r is not None)
        lines.append(f"| {data} | {n:,} | {' | '.join(cells)} | {scores} | {highest:.1f} |")
    lines.append("\n![CPU time per sample of SDR, by stages, and of UMAP](against_umap.svg)")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is not stored, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=tuple(SIZES), default=tuple(SIZES))
    parser.add_argument("--sizes", type=int, nargs="+", help="by default those of each data set")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--point", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.point:
        method, data, n = options.point
        print(json.dumps(measure(method, data, int(n))))
        return
    log = options.out / "against_umap.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for data in options.data:
        for n in options.sizes or SIZES[data]:
            for method in options.methods:
                if any((r["method"], r["data"], r["n"]) == (method, data, n) for r in records):
                    continue
                command = [sys.executable, __file__, "--point", method, data, str(n)]
                child = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | ONE_THREAD)
                records.append(json.loads(child.stdout.splitlines()[-1]))
                print(json.dumps(records[-1]), flush=True)
                with log.open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    (options.out / "against_umap.md").write_text(write(records))
    title = "CPU time per sample of SDR, by stages, and of supervised UMAP."
    drawn = draw_figure("against_umap", title, (7.6, 4.6), lambda figure: draw(figure, records))
    (options.out / "against_umap.svg").write_text(drawn.svg)


if __name__ == "__main__":
    main()

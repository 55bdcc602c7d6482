"""Judge prototypes as their users would: train on the m medoids alone, and score held-out samples; see README.md.

python benchmarks/prototypes.py              # five sets, three splits; computes what prototypes.jsonl lacks
python benchmarks/prototypes.py --again SDR  # computes the rows of SDR anew
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from summaries import SUMMARIES

from distreduce_paper.experiments.picture import HELD_OUT  # registers the data sets
from distreduce_paper.problems import Split, load_split

SETS = (
    *(f"scikit-learn {name}" for name in ("digits", "breast cancer", "wine", "diabetes")),
    "Friedman #1, noise 1",
)
SIZES = (10, 20, 50, 100)
SCORES = {"nearest": "1-NN", "linear": "logistic / ridge"}
PACKAGES = {"k-medoids": "kmedoids", "SLIPMAP": "slisemap"}  # not among the dependencies: see README.md
ALL = "all samples"
NOTES = """\
A model is trained on the m chosen samples alone, and scored on the 30 % of the samples that are held out: accuracy \
for classes, R² for diabetes and Friedman #1. *1-NN* is one nearest neighbour. *Logistic / ridge* is scikit-learn's \
`LogisticRegression` or `Ridge` with default penalty, with the weights of the samples scaled to a mean of one. \
Features are standardized by the training part, and the splits are those of `distreduce reproduce run picture`. \
Methods that leave prototypes empty have fewer than m samples. Cells show *1-NN / linear (samples)*, means over {seeds}.

*SDR* is `SDR(n_prototypes=m)` and its `prototype_medoids_`. *k-means per class* takes the samples nearest to the \
centres, within fifths of y for numbers. *ProtoDash* is our own implementation with MMD-critic's kernel, which counts \
pairs of one class only. A prototype of *SLIPMAP* is a place in a plane with a local model; its sample is the nearest \
in that plane. It was not run on the digits: one fit took 104 seconds with m = 10 and failed with m = 100. Elsewhere, \
its cells are empty where its optimizer overflowed on one of the splits."""

Point = dict[str, Any]


def points(seeds: int) -> Iterator[Point]:
    """Return what there is to compute, the slow method last."""
    for method in sorted(SUMMARIES, key=lambda name: name == "SLIPMAP"):
        for data in SETS:
            if (method, data) != ("SLIPMAP", "scikit-learn digits"):  # see NOTES
                for m in (0,) if method == ALL else SIZES:
                    yield from ({"method": method, "data": data, "m": m, "seed": seed} for seed in range(seeds))


def compute(point: Point) -> Point:
    """Choose the samples of one point, and score models trained on them."""
    parts = load_split(point["data"], point["seed"], held_out=HELD_OUT)
    start = time.perf_counter()
    rows, weights = SUMMARIES[point["method"]](parts.X_train, parts.y_train, point["m"], point["seed"])
    seconds = time.perf_counter() - start
    scores = {name: round(score, 4) for name, score in score_models(parts, rows, weights).items()}
    return {**point, **scores, "samples": len(rows), "seconds": round(seconds, 3)}


def score_models(parts: Split, rows: Any, weights: Any) -> dict[str, float]:
    """Return the held-out scores of models trained on these rows."""
    X, y = parts.X_train[rows], parts.y_train[rows]
    if y.dtype.kind == "f":
        nearest, linear = KNeighborsRegressor(1), Ridge()
    else:
        nearest, linear = KNeighborsClassifier(1), LogisticRegression(max_iter=5000)
        if len(np.unique(y)) == 1:  # a few samples drawn at random may be of one class
            linear = DummyClassifier()
    linear.fit(X, y, sample_weight=weights / weights.mean())
    models = {"nearest": nearest.fit(X, y), "linear": linear}
    return {name: float(model.score(parts.X_test, parts.y_test)) for name, model in models.items()}


def run(path: Path, seeds: int, again: list[str], console: Console) -> list[Point]:
    """Compute the points that the file lacks, and write it after each."""
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = [point for point in found if point["method"] not in again]
    done = {_key(point) for point in found}
    missing = {name for name, package in PACKAGES.items() if find_spec(package) is None}
    if missing:
        console.print(f"left out, because their packages are not installed: {', '.join(sorted(missing))}")
    for point in points(seeds):
        if _key(point) in done or point["method"] in missing:
            continue
        try:
            found.append(compute(point))
        except RuntimeError as error:  # SLIPMAP's optimizer may overflow
            console.print(f"failed: {point}: {error}")
            continue
        console.print(json.dumps(found[-1]), soft_wrap=True)
        path.write_text("".join(json.dumps(one, sort_keys=True) + "\n" for one in sorted(found, key=_key)))
    return found


def _key(point: Point) -> tuple[str, str, int, int]:
    return point["method"], point["data"], point["m"], point["seed"]


def markdown(found: list[Point]) -> str:
    """Format the comparison with SDR, and one table per data set."""
    frame = pd.DataFrame(found)
    groups = frame.groupby(["data", "method", "m"])
    # A mean over fewer splits than the others' would not be comparable.
    means = groups[[*SCORES, "samples", "seconds"]].mean()[groups.size() == frame["seed"].nunique()]
    seeds = f"{frame['seed'].nunique()} splits"
    lines = ["# Samples that stand for a training set", "", NOTES.format(seeds=seeds), "", *_comparison(means)]
    for data in SETS:
        own = means.loc[data]
        lines += ["", f"## {data}", "", "| method | " + " | ".join(f"m = {m}" for m in SIZES) + " |", "|---" * 5 + "|"]
        for method in SUMMARIES:
            if method in own.index.get_level_values("method") and method != ALL:
                cells = [_cell(own, method, m) for m in SIZES]
                lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines += ["", f"All samples: {_cell(own, ALL, 0)}."]
    return "\n".join(lines) + "\n"


def _cell(means: pd.DataFrame, method: str, m: int) -> str:
    if (method, m) not in means.index:
        return ""
    row = means.loc[(method, m)]
    return f"{row['nearest']:.3f} / {row['linear']:.3f} ({row['samples']:.0f})"


def _comparison(means: pd.DataFrame) -> list[str]:
    """Return a table of how often and by how much SDR is ahead of each other method."""
    lines = ["| SDR against | " + " | ".join(SCORES.values()) + " | mean seconds |", "|---|---|---|--:|"]
    ours = means.xs("SDR", level="method")
    for method in SUMMARIES:
        if method not in means.index.get_level_values("method") or method == ALL:
            continue
        other, cells = means.xs(method, level="method"), []
        for score in SCORES:
            leads = (ours[score] - other[score]).dropna()
            cells.append(f"ahead in {(leads > 0).sum()} of {len(leads)}, mean lead {leads.mean():+.3f}")
        cells = cells if method != "SDR" else [""] * len(SCORES)
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {other['seconds'].mean():.2f} |")
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Compute what is missing, and write prototypes.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--again", nargs="+", default=[], choices=SUMMARIES, help="methods to compute anew")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "benchmarks")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # a fit that reaches its iteration limit is scored too
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console()
    found = run(options.out / "prototypes.jsonl", options.seeds, options.again, console)
    (options.out / "prototypes.md").write_text(markdown(found), encoding="utf-8")
    console.print(f"written: {options.out / 'prototypes.jsonl'}, {options.out / 'prototypes.md'}")


if __name__ == "__main__":
    main()

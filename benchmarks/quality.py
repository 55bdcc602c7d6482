"""Scores of the reductions on the paper's data: means and standard deviations over five seeds.

``python benchmarks/quality.py --data DIR`` prints three tables and writes them to results/benchmarks/quality.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from distreduce import SDR, DistR
from distreduce.exceptions import SolverConvergenceWarning
from distreduce.metrics import reduction_scores

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import data_sets  # noqa: E402

SEEDS = range(5)
PERPLEXITY = {"coil20": 20.0, "snareseq": 30.0}
METHODS: dict[str, Callable[..., Any]] = {
    "SDR": SDR,
    "SDR, eta=0 (FGW-only)": lambda **options: SDR(eta=0.0, **options),
    "DistR": DistR,
}


def prototype_table(folder: Path) -> pd.DataFrame:
    """Homogeneity, k-means NMI, silhouette (×100) and CKA of the prototypes, a row a data set, m and method."""
    rows = []
    for name, perplexity in PERPLEXITY.items():
        X, y = getattr(data_sets, name)(folder)
        cases = [(m, label) for m in (100, 200) for label in METHODS]
        for m, label in track(cases, description=name, console=Console(stderr=True)):
            options = {"n_prototypes": m, "perplexity": perplexity}
            found = [METHODS[label](random_state=seed, **options).fit(X, y) for seed in SEEDS]
            scores = pd.DataFrame([reduction_scores(model, y) for model in found])
            used = np.mean([np.count_nonzero(model.prototype_weights_) for model in found])
            rows.append({"data": name, "m": m, "method": label, **_spread(scores, 1, cka=3), "used": f"{used:.0f}"})
    return pd.DataFrame(rows)


def neighbour_table() -> pd.DataFrame:
    """R² of ten nearest neighbours in the plane (80/20 splits), with the perplexity of the paper, 20."""
    rows = []
    for name in ("s_curve", "swiss_roll", "friedman"):
        scores = []
        for seed in SEEDS:
            X_train, X_test, y_train, y_test = getattr(data_sets, name)(seed)
            model = SDR(perplexity=20, random_state=seed).fit(X_train, y_train)
            neighbours = KNeighborsRegressor(10).fit(model.embedding_, y_train)
            train, test = neighbours.score(model.embedding_, y_train), neighbours.score(model.transform(X_test), y_test)
            scores.append({"train R²": train, "test R²": test})
        rows.append({"data": name, **_spread(pd.DataFrame(scores), 3)})
    return pd.DataFrame(rows)


def noise_table() -> pd.DataFrame:
    """Held-out R² of ten nearest neighbours on scikit-learn's diabetes data, whose targets are noisy, by `map_reg`."""
    rows: dict[str, list[float]] = {}
    for seed in SEEDS:
        X_train, X_test, y_train, y_test = train_test_split(*load_diabetes(return_X_y=True), random_state=seed)
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        for map_reg in (0.01, 0.3, 1.0):
            model = SDR(map_reg=map_reg, task="regression", random_state=seed).fit(X_train, y_train)
            neighbours = KNeighborsRegressor(10).fit(model.embedding_, y_train)
            score = neighbours.score(model.transform(X_test), y_test)
            rows.setdefault(f"in the plane, map_reg={map_reg}", []).append(score)
            rows.setdefault(f"spread of z, map_reg={map_reg}", []).append(float(model.embedding_.std(axis=0).max()))
        score = KNeighborsRegressor(10).fit(X_train, y_train).score(X_test, y_test)
        rows.setdefault("all ten features", []).append(score)
    return pd.DataFrame({"diabetes": list(rows), "mean of five splits": [f"{np.mean(v):.3f}" for v in rows.values()]})


def _spread(scores: pd.DataFrame, digits: int, **other: int) -> dict[str, str]:
    """Mean ± standard deviation of every column."""
    return {
        name: f"{scores[name].mean():.{other.get(name, digits)}f} ± {scores[name].std():.{other.get(name, digits)}f}"
        for name in scores
    }


def markdown(table: pd.DataFrame) -> str:
    """The table in Markdown."""
    lines = ["| " + " | ".join(table.columns) + " |", "|---" * len(table.columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in table.to_numpy()])


def main() -> None:
    """Run the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DISTREDUCE_DATA"), help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "quality.md")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data DIR or set DISTREDUCE_DATA: the folder with coil20.npz and snareseq.npz")
    warnings.simplefilter("ignore", SolverConvergenceWarning)
    parts = [markdown(prototype_table(Path(arguments.data))), markdown(neighbour_table()), markdown(noise_table())]
    text = "Five seeds, mean ± standard deviation. `python benchmarks/quality.py`\n\n" + "\n\n".join(parts) + "\n"
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text)
    Console().print(text, soft_wrap=True)


if __name__ == "__main__":
    main()

"""Do prototypes gather samples whose noise is alike? Score the nearest prototype on held-out samples; see README.md.

DISTREDUCE_DATA=folder OMP_NUM_THREADS=1 python benchmarks/noise.py  # images only where the folder has them
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification, make_friedman1
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from distreduce import SDR

RESULTS = Path(__file__).parents[1] / "results" / "benchmarks" / "noise.md"
NOTES = """\
# Prototypes and the noise of y

`DISTREDUCE_DATA=folder OMP_NUM_THREADS=1 python benchmarks/noise.py`. *Nearest prototype*: the class (accuracy) or \
number (R²) that the fit gives to the prototype nearest to a held-out sample. *Plane*: ten nearest neighbours among \
the fitted places. Labels are flipped in the training part only; the scores count clean labels.

| data | training rows | prototypes | affinity | nearest prototype | plane | CPU seconds |
|---|---|---|---|---|---|---|
"""


class Table(NamedTuple):
    """Training rows first; `truth` is what held-out samples are scored by."""

    name: str
    X: Any
    y: Any
    truth: Any
    n_train: int
    m: int
    affinity: str
    task: str = "classification"


def tables() -> Iterator[Table]:
    """Yield flipped labels, images and Friedman #1."""
    for seed in range(3):
        X, clean = make_classification(
            2000, 6, n_informative=3, n_redundant=0, class_sep=2.0, flip_y=0, random_state=seed
        )
        y = np.where(np.random.default_rng(seed).random(len(clean)) < 0.3, 1 - clean, clean)
        for affinity in ("dense", "sparse"):
            yield Table(f"two classes, 30 % flipped, seed {seed}", X, y, clean, 1000, 30, affinity)
    X, clean = make_classification(20_000, 20, n_informative=6, n_redundant=0, n_classes=3, flip_y=0, random_state=1)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(clean)) < 0.3, rng.integers(0, 3, len(clean)), clean)
    yield Table("three classes, 30 % drawn at random", X, y, clean, 15_000, 100, "sparse")
    for noise, n in ((3.0, 12_000), (1.0, 4500)):
        X, y = make_friedman1(n + 4000, noise=noise, random_state=0)
        yield Table(f"Friedman #1, noise {noise:g}, R²", X, y, y, n, 100, "sparse", "regression")
    for name, n in (("mnist", 5000), ("fashion_mnist", 6400)):
        file = Path(os.environ.get("DISTREDUCE_DATA", "")) / f"{name}_t10k.npz"
        if file.exists():
            X, y = list(np.load(file, allow_pickle=False).values())[:2]
            X = PCA(50, random_state=0).fit_transform(X.reshape(len(X), -1) / 255.0)
            for affinity in ("dense", "sparse"):
                yield Table(name, X, y, y, n, 100, affinity)


def measure(table: Table) -> str:
    """Return a row of the table."""
    rows = np.random.default_rng(0).permutation(len(table.X))
    train, test = rows[: table.n_train], rows[table.n_train :]
    scaler = StandardScaler(with_std="mnist" not in table.name).fit(table.X[train])
    A, B = scaler.transform(table.X[train]), scaler.transform(table.X[test])
    began = time.process_time()
    model = SDR(n_prototypes=table.m, affinity=table.affinity, task=table.task, random_state=0).fit(A, table.y[train])
    seconds = time.process_time() - began
    used, places = np.flatnonzero(model.prototype_weights_), model.transform(B)
    found = model.prototype_targets_[used[cdist(places, model.prototypes_[used]).argmin(axis=1)]]
    if table.task == "classification":
        nearest = np.mean(model.classes_[found.argmax(axis=1)] == table.truth[test])
        plane = KNeighborsClassifier(10)
    else:
        nearest, plane = r2_score(table.truth[test], found[:, 0]), KNeighborsRegressor(10)
    plane_score = plane.fit(model.embedding_, table.y[train]).score(places, table.truth[test])
    cells = (
        table.name,
        f"{table.n_train:,}",
        table.m,
        table.affinity,
        f"{nearest:.3f}",
        f"{plane_score:.3f}",
        f"{seconds:.0f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main() -> None:
    """Measure all tables and write the results."""
    warnings.simplefilter("ignore")
    lines = []
    for table in tables():
        lines.append(measure(table))
        sys.stdout.write(lines[-1])
        sys.stdout.flush()
    RESULTS.write_text(NOTES + "".join(lines))


if __name__ == "__main__":
    main()

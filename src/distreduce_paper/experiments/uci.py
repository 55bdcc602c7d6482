"""Beyond the paper: the standard splits of UCI sets, next to the best published figures."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from distreduce import datasets
from distreduce.exceptions import InvalidInputError
from distreduce_paper.experiment import Cell, Experiment
from distreduce_paper.experiments._reductions import round_digits
from distreduce_paper.measure import measure
from distreduce_paper.methods import PREDICTORS
from distreduce_paper.problems import QUICK_SAMPLES, Array, Problem, Split, add_own_problems, get_problem
from distreduce_paper.report.blocks import Block, Table
from distreduce_paper.report.comparison import DASH, format_mean

SPLITS, TRAINING_SHARE = 20, 0.9
# Negative log density of a test target (mean and standard deviation over the splits) and RMSE, in the units of y, as
# the literature has them; collected second-hand.
BEST: dict[str, tuple[str, str]] = {
    "boston": ("2.35 ± 0.06, Evidential", "2.65, Concrete Dropout"),
    "concrete": ("2.83 ± 0.11, WGBoost", "3.86, TabPFN"),
    "energy": ("0.53 ± 0.08, WGBoost", "0.32, XGBoost"),
    "power_plant": ("2.58, TabResFlow", "3.00, TabPFN"),
    "wine_quality_red": ("0.89, Evidential", "0.564, XGBoost"),
}
FROM_FILE = ("power_plant", "wine_quality_red")
NOTES = """\
The 20 splits into 90 % training and 10 % test samples that the literature reports on (Hernández-Lobato and Adams, \
2015; Gal and Ghahramani, 2016). Targets are in their own units. *NLL* is the negative log density of a test target \
(lower is better), *within 90 %* the share of test targets in central 90 % intervals. Published figures are \
second-hand. *ARD GP* is a plain Gaussian process on all features. Forests and boosted trees get the standard \
deviation of their cross-validated errors. `--datasets "UCI power_plant"` and `"UCI wine_quality_red"` are read from \
NPZ files with X and y in the folder `DISTREDUCE_UCI`; `--methods CatBoost` and `NGBoost` need these libraries. Slow \
methods have run on fewer splits; a plain Gaussian process of 8611 rows, those of power plant, is too slow."""


def _load_file(name: str, seed: int) -> tuple[Array, Array]:
    folder = os.environ.get("DISTREDUCE_UCI")
    if folder is None:
        raise InvalidInputError(f"{name} needs DISTREDUCE_UCI, a folder with {name}.npz that holds X and y.")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"]


def _load_named(name: str, seed: int) -> tuple[Array, Array]:
    bunch = datasets.load(name)
    return bunch.X, bunch.y.reshape(len(bunch.y), -1)[:, 0]  # of energy, the heating load


LOADERS: dict[str, Callable[[int], tuple[Array, Array]]] = {
    **{name: partial(_load_named, name) for name in ("boston", "concrete", "energy")},
    **{name: partial(_load_file, name) for name in FROM_FILE},
}
add_own_problems({f"UCI {name}": Problem(load, "regression") for name, load in LOADERS.items()})


def draw_test_rows(n: int, split: int) -> Array:
    """Return the test rows of a standard split: the last tenth of the permutation drawn for it."""
    rng = np.random.RandomState(1)  # the seed behind the published splits
    for _ in range(split):
        rng.choice(n, n, replace=False)
    return np.asarray(rng.choice(n, n, replace=False)[round(TRAINING_SHARE * n) :])


def split_rows(name: str, split: int, *, quick: bool = False) -> Split:
    """Load one of the standard splits, in the units of the data."""
    X, y = get_problem(name).load(0)
    if quick:
        X, y = X[:QUICK_SAMPLES], y[:QUICK_SAMPLES]
    test = draw_test_rows(len(X), split)
    train = np.setdiff1d(np.arange(len(X)), test)
    return Split(X[train], X[test], y[train], y[test])


def run(cell: Cell) -> dict[str, Any]:
    """Fit to the training samples of a split, and score its test samples."""
    parts = split_rows(cell.data, cell.seed, quick=cell.quick)
    with measure() as cost:
        model = PREDICTORS[cell.method].regression(cell.seed).fit(parts.X_train, parts.y_train)  # type: ignore[misc]
    mean, std = model.predict(parts.X_test, return_std=True)
    if hasattr(model, "log_density"):  # its own, which may be skewed or have heavy tails
        density, (low, high) = model.log_density(parts.X_test, parts.y_test), model.predict_interval(parts.X_test).T
    else:
        density, (low, high) = norm(mean, std).logpdf(parts.y_test), norm(mean, std).interval(0.9)
    inside = (low <= parts.y_test) & (parts.y_test <= high)
    scores = {
        "nll": -float(np.mean(density)),
        "rmse": float(np.sqrt(np.mean((mean - parts.y_test) ** 2))),
        "within_90": float(np.mean(inside)),
        "fit_seconds": cost.seconds,
    }
    return {name: round_digits(value) for name, value in scores.items()}


def report(frame: pd.DataFrame) -> list[Block]:
    """One table per data set, one row per method, the published figures last."""
    blocks: list[Block] = []
    for data, rows in frame.groupby("data", sort=False):
        lines = [
            {
                "Method": str(method),
                "splits": str(len(own)),
                "NLL": format_mean(own["nll"].to_numpy()),
                "RMSE": format_mean(own["rmse"].to_numpy()),
                "within 90 %": f"{100 * own['within_90'].mean():.1f} %",
                "seconds": f"{own['fit_seconds'].mean():.1f}",
            }
            for method, own in rows.groupby("method", sort=False)
        ]
        name = str(data).removeprefix("UCI ")
        if name in BEST:
            nll, rmse = BEST[name]
            lines.append({"Method": "best published", "NLL": nll, "RMSE": rmse})
        blocks.append(
            Table(f"{name.replace('_', ' ')}, means ± deviations over splits.", pd.DataFrame(lines).fillna(DASH))
        )
    return blocks


EXPERIMENT = Experiment(
    name="uci",
    title="Standard splits of UCI sets",
    paper="",
    datasets=tuple(f"UCI {name}" for name in LOADERS if name not in FROM_FILE),
    more_datasets=tuple(f"UCI {name}" for name in FROM_FILE),
    task="regression",
    methods=("SDR-GP", "ARD GP", "linear", "random forest", "boosted trees"),
    run=run,
    report=report,
    notes=NOTES,
    seeds=SPLITS,
)

"""SDRImputer against scikit-learn's imputers: errors of hidden cells, and how many its 90 % intervals cover.

``python benchmarks/imputation.py`` prints decision 25's table; ``--tables iris wine --draws 2`` parts of it.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler

from distreduce import SDRImputer

SHARES = (0.1, 0.3, 0.5)
TABLES = {
    "iris": lambda: datasets.load_iris().data,
    "blobs": lambda: datasets.make_blobs(300, 10, centers=6, cluster_std=2.0, random_state=0)[0],
    "S-curve": lambda: datasets.make_s_curve(500, noise=0.05, random_state=0)[0],
    "wine": lambda: datasets.load_wine().data,
    "diabetes": lambda: datasets.load_diabetes().data,
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    "digits": lambda: (X := datasets.load_digits().data[:600])[:, X.std(axis=0) > 0.1],  # an hour
}
IMPUTERS = {
    "median": lambda seed: SimpleImputer(strategy="median"),
    "5-NN": lambda seed: KNNImputer(),
    "15-NN by distance": lambda seed: KNNImputer(n_neighbors=15, weights="distance"),
    "iterative": lambda seed: IterativeImputer(random_state=seed, max_iter=20),
    "SDRImputer": lambda seed: SDRImputer(random_state=seed),
}


def hide(X: Any, share: float, at_random: bool, seed: int) -> Any:
    """Return X with NaN: every cell alike, or large values more often."""
    chance = np.full(X.shape, share)
    if not at_random:
        chance = 1 / (1 + np.exp(-2 * StandardScaler().fit_transform(X)))
        for _ in range(20):
            chance = np.clip(chance * share / chance.mean(), 0, 0.95)
    return np.where(np.random.default_rng(100 * seed + 7).random(X.shape) < chance, np.nan, X)


def score(name: str, X: Any, table: Any, seed: int) -> dict[str, float]:
    """Return the root mean square error of the hidden cells in standard deviations, and coverage where it is known."""
    scaler, missing = StandardScaler().fit(table), np.isnan(table)  # of the known cells: neighbours need a scale
    imputer = IMPUTERS[name](seed)
    Z = imputer.fit_transform(scaler.transform(table))
    errors = (scaler.inverse_transform(Z) - X)[missing] / np.broadcast_to(X.std(axis=0), X.shape)[missing]
    scores = {name: float(np.sqrt(np.mean(errors**2)))}
    if name == "SDRImputer":
        Z, std = imputer.transform(scaler.transform(table), return_std=True)
        scores["cover"] = float(np.mean(np.abs(Z - scaler.transform(X))[missing] < 1.645 * std[missing]))
    return scores


def main() -> None:
    """Print the errors of each table, and their means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES)[:-1])
    parser.add_argument("--draws", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # the iterative imputer seldom converges
    rows = []
    for table in options.tables:
        X = TABLES[table]()
        for at_random in (True, False):
            for share in SHARES:
                for seed in range(options.draws):
                    hidden, row = hide(X, share, at_random, seed), {"table": table, "at random": at_random}
                    for name in IMPUTERS:
                        row |= score(name, X, hidden, seed)
                    rows.append({**row, "missing": share})
    frame = pd.DataFrame(rows)
    for keys in (["table", "at random", "missing"], ["at random", "missing"]):
        print(frame.groupby(keys, sort=False).mean(numeric_only=True).round(3).to_string())


if __name__ == "__main__":
    main()

"""Compare SDRGPClassifier with default parameters, with the map for images, and a plain GP, on small tables.

python benchmarks/classes.py     # accuracy and log probability, means of four folds; about a minute
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.preprocessing import StandardScaler

from distreduce.exceptions import DistReduceWarning
from distreduce.gp import GPClassifier, SDRGPClassifier

MODELS = {
    "SDRGPClassifier()": SDRGPClassifier(random_state=0),
    "length_scale_factor=0.5, map_reg=0.01": SDRGPClassifier(length_scale_factor=0.5, map_reg=0.01, random_state=0),
    "GPClassifier()": GPClassifier(random_state=0),
}


def noisy_thirds(n: int = 240) -> tuple[Any, Any]:
    """Make three ordered classes that depend on one of seven features, with noise."""
    random = np.random.default_rng(5)
    X = random.normal(size=(n, 7))
    return X, np.digitize(X[:, 0] + 0.6 * random.normal(size=n), [-0.5, 0.6])


def data() -> dict[str, tuple[Any, Any]]:
    """Return the tables, standardised; some have noisy classes."""
    raw = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "a fifth of the labels at random": make_classification(300, 10, n_informative=3, flip_y=0.2, random_state=0),
        "noisy thirds": noisy_thirds(),
    }
    return {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in raw.items()}


def main() -> None:
    """Cross-validate each model on each table, and print the scores."""
    warnings.simplefilter("ignore", DistReduceWarning)  # a fit that reaches its iteration limit is scored too
    table = Table("accuracy / log probability", *MODELS)
    # The same folds for every model.
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    for name, (X, y) in data().items():
        cells = []
        for model in MODELS.values():
            found = cross_validate(model, X, y, cv=folds, scoring=("accuracy", "neg_log_loss"))
            cells.append(f"{found['test_accuracy'].mean():.3f} / {found['test_neg_log_loss'].mean():.3f}")
        table.add_row(name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()

"""Other measures of dependence in SDR, as kernels: held-out scores of ten neighbours in the plane, three seeds.

The squared distance correlation is CKA with the kernels −|z − z'| and −|y − y'| (Sejdinovic et al., 2013); alignment by
class balance is CKA with K_Y = Σ_c y_c y'_c / n_c. ``python benchmarks/dependences.py`` prints decision 25's table.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import datasets
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from distreduce import SDR
from distreduce.kernels import RationalQuadratic

SEEDS, MOST = 3, 500
SETS = {
    "wine": partial(datasets.load_wine, return_X_y=True),
    "breast cancer": partial(datasets.load_breast_cancer, return_X_y=True),
    "digits": partial(datasets.load_digits, return_X_y=True),
    "unequal classes": partial(datasets.make_classification, 600, 20, n_informative=6, n_classes=4,
                               weights=[0.7, 0.15, 0.1, 0.05], class_sep=1.5, random_state=0),
    "diabetes": partial(datasets.load_diabetes, return_X_y=True),
    "Friedman": partial(datasets.make_friedman1, 600, noise=1.0, random_state=0),
}  # fmt: skip


class Distance(RationalQuadratic):
    """k = −(|z − z'|² + ε)^½, up to a constant; ε keeps its slope finite where two prototypes meet."""

    def of_sq_distance(self, sq_distance: Any) -> Any:
        return -np.sqrt(np.asarray(sq_distance) + 1e-6)

    minus_one = of_sq_distance  # CKA centres, so a constant does not matter

    def derivative(self, sq_distance: Any) -> Any:
        return 0.5 / self.of_sq_distance(sq_distance)


def options(measure: str, y: Any) -> dict[str, Any]:
    """Return the parameters of SDR for a measure of dependence."""
    if measure == "distance correlation":  # the fused loops know the usual kernels only
        return {
            "embedding_kernel": Distance(),
            "target_kernel": lambda A, B=None: -cdist(A, A if B is None else B),
            "backend": "numpy",
        }
    if measure == "class balance":
        sizes = np.unique(y, return_counts=True)[1]
        return {"target_kernel": lambda A, B=None: (A / sizes) @ (A if B is None else B).T}
    return {"dependence": measure}


def score(name: str, measure: str, seed: int) -> float:
    """Return the balanced accuracy or R² of ten neighbours in the plane on the held-out third."""
    X, y = SETS[name]()
    X, X_new, y, y_new = train_test_split(X[:MOST], y[:MOST], test_size=1 / 3, random_state=seed)
    scaler = StandardScaler().fit(X)
    model = SDR(random_state=seed, **options(measure, y)).fit(scaler.transform(X), y)
    numbers = y.dtype.kind == "f"
    neighbours = KNeighborsRegressor(10) if numbers else KNeighborsClassifier(10)
    neighbours.fit(getattr(model, "embedding_left_out_", model.embedding_), y)
    predicted = neighbours.predict(model.transform(scaler.transform(X_new)))
    return float((r2_score if numbers else balanced_accuracy_score)(y_new, predicted))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    measures = ("cka", "cka_uncentered", "hsic", "distance correlation", "class balance")
    print("|", *measures, sep=" | ", flush=True)
    for name in SETS:
        apply = measures[: -1 if name in ("diabetes", "Friedman") else None]  # numbers have no classes
        found = [[score(name, one, seed) for seed in range(SEEDS)] for one in apply]
        cells = (f"{np.mean(own):.3f} ± {np.std(own, ddof=1):.3f}" for own in found)
        print(f"| {name}", *cells, sep=" | ", flush=True)

"""Small fits as bytes: what processes of any kind can import and compare."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
NUMBERS = X[:, 0] ** 2 + X[:, 1] + 0.1 * RNG.normal(size=40)
CLASSES = np.digitize(NUMBERS, [0.0, 1.5])
QUICK: Any = {"gp_steps": 3, "random_state": 0}  # every expert is in one of the two
FITS: dict[str, Any] = {
    "SDR": lambda n_jobs: SDR(n_prototypes=8, random_state=0, n_jobs=n_jobs).fit(X, NUMBERS),
    "DistR": lambda n_jobs: DistR(n_prototypes=8, random_state=0, n_jobs=n_jobs).fit(X),
    "SDRGPRegressor": lambda n_jobs: SDRGPRegressor(experts=["linear", "boosting"], **QUICK, n_jobs=n_jobs).fit(
        X, NUMBERS
    ),
    "SDRGPClassifier": lambda n_jobs: SDRGPClassifier(2, experts=["forest"], **QUICK, n_jobs=n_jobs).fit(X, CLASSES),
}


def model(name: str, n_jobs: int | None) -> Any:
    """The fitted model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[name](n_jobs)


def fit(name: str, n_jobs: int | None) -> bytes:
    """What the model says of rows that it has not seen, to the last bit."""
    fitted = model(name, n_jobs)
    new = X[:20] + 0.25
    said = fitted.predict_proba(new) if hasattr(fitted, "predict_proba") else fitted.transform(new)
    return np.ascontiguousarray(said).tobytes()


def fit_in_loops() -> bytes:
    """A fit with enough samples for compiled loops, dense and on a graph."""
    rows, said = np.random.default_rng(1).normal(size=(300, 5)), b""
    for kind in ("dense", "sparse"):
        model = SDR(n_prototypes=10, affinity=kind, random_state=0).fit(rows, rows[:, 0] ** 2)
        said += np.ascontiguousarray(model.transform(rows)).tobytes()
    return said

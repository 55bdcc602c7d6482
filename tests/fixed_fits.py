"""Fits with fixed seeds and digests of their results: whether a change kept every bit.

Run ``python tests/fixed_fits.py --save`` before a change and ``--compare`` after it, on the same machine.
``tests/test_fixed_fits.py`` does so where digests of the machine are saved, and compares summaries within a tolerance
everywhere.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_diabetes, load_digits, load_iris

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor

Results = dict[str, np.ndarray]
SAVED = Path(__file__).with_name("fixed_fits.json")


def _reduction(model: Any) -> Results:
    names = ["embedding_", "prototypes_", "prototype_weights_", "prototype_medoids_", "labels_", "prototype_targets_"]
    found = {name: np.asarray(getattr(model, name)) for name in names if hasattr(model, name)}
    coupling = sparse.csr_array(model.coupling_)
    found["objective_"] = np.array([model.objective_])
    return found | {"coupling_data": coupling.data, "coupling_columns": coupling.indices}


def _diabetes(n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X[:n] * 20, y[:n]


def dense_prototypes() -> Results:
    return _reduction(SDR(n_prototypes=10, random_state=0).fit(*load_iris(return_X_y=True)))


def dense_one_to_one() -> Results:
    return _reduction(SDR(random_state=0).fit(*_diabetes(80)))


def dense_ard_weighted() -> Results:
    X, y = _diabetes(120)
    weights = 1.0 + (np.arange(120) % 3)
    return _reduction(SDR(n_prototypes=8, length_scale="ard", random_state=0).fit(X, y, sample_weight=weights))


def unsupervised() -> Results:
    return _reduction(DistR(n_prototypes=12, random_state=1).fit(load_iris(return_X_y=True)[0]))


def alternating() -> Results:
    options = {"solver": "alternating", "optimizer": "adam", "learning_rate": 0.05, "max_iter": 3, "tol": 0.0}
    return _reduction(SDR(n_prototypes=10, max_inner_iter=30, random_state=0, **options).fit(*_diabetes(90)))


def sparse_graph() -> Results:
    X, y = load_digits(return_X_y=True)
    return _reduction(SDR(n_prototypes=20, affinity="sparse", max_iter=10, random_state=0).fit(X[:700], y[:700]))


def precomputed() -> Results:
    X, y = _diabetes(90)
    return _reduction(SDR(n_prototypes=9, metric="precomputed", random_state=0).fit(cdist(X, X), y))


def semi_supervised() -> Results:
    X, y = _diabetes(100)
    return _reduction(SDR(n_prototypes=10, random_state=0).fit(X, np.where(np.arange(100) % 2, np.nan, y)))


def gp_regressor() -> Results:
    X, y = _diabetes(140)
    model = SDRGPRegressor(random_state=0).fit(X[:110], y[:110])
    mean, std = model.predict(X[110:], return_std=True)
    return {"mean": mean, "std": std, "embedding": model.transform(X[110:])}


def gp_classifier() -> Results:
    X, y = load_iris(return_X_y=True)
    model = SDRGPClassifier(random_state=0).fit(X[::2], y[::2])
    return {"probabilities": model.predict_proba(X[1::2]), "embedding": model.transform(X[1::2])}


def dask_cluster() -> Results:
    import dask.array as da
    from distributed import Client, LocalCluster

    X, y = load_digits(return_X_y=True)
    model = SDR(n_prototypes=15, affinity="sparse", max_iter=4, tol=1e-3, random_state=0)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        with Client(cluster):
            model.fit(da.from_array(X[:900], chunks=(250, -1)), y[:900])
    model.embedding_ = np.asarray(model.embedding_)
    return _reduction(model)


FITS: dict[str, Callable[[], Results]] = {
    fit.__name__: fit
    for fit in (
        dense_prototypes,
        dense_one_to_one,
        dense_ard_weighted,
        unsupervised,
        alternating,
        sparse_graph,
        precomputed,
        semi_supervised,
        gp_regressor,
        gp_classifier,
        dask_cluster,
    )
}


def digest(results: Results) -> dict[str, str]:
    """SHA-256 of the bytes of every result."""
    return {name: sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16] for name, values in results.items()}


def summarize(results: Results) -> dict[str, list[float]]:
    """Return the size and the sum of absolute values of every result."""
    flat = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in results.items()}
    return {
        name: [float(len(values)), float(np.abs(values[np.isfinite(values)]).sum())] for name, values in flat.items()
    }


def machine() -> str:
    """Name all that the bits depend on: the processor, with what it can do, and the libraries that compute."""
    cpu = Path("/proc/cpuinfo")
    facts = cpu.read_text().split("\n\n")[0].splitlines() if cpu.exists() else []
    kept = [line for line in facts if line.startswith(("cpu family", "model", "stepping", "flags"))]
    processor = sha256("\n".join([platform.machine(), *kept]).encode()).hexdigest()[:12]
    return ", ".join([processor, *(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "numba"))])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="save digests of this machine, and summaries")
    parser.add_argument("--compare", action="store_true", help="compare digests with the saved ones of this machine")
    options = parser.parse_args()
    digests, summaries = {}, {}
    for name, fit in FITS.items():
        began = time.perf_counter()
        results = fit()
        digests[name], summaries[name] = digest(results), summarize(results)
        print(f"{name:20s} {time.perf_counter() - began:6.2f} s", flush=True)
    if options.save:
        SAVED.write_text(json.dumps({"summaries": summaries, "digests": {machine(): digests}}, indent=1) + "\n")
    if not options.compare:
        return 0
    before = json.loads(SAVED.read_text())["digests"][machine()]
    changed = [f"{fit}.{key}" for fit, keys in before.items() for key in keys if digests[fit].get(key) != keys[key]]
    print("same bits" if not changed else "changed: " + ", ".join(changed))
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())

"""Fits with fixed seeds and digests of their results: whether a change kept every bit.

Run ``python tests/fixed_fits.py --save FILE`` before a change and ``python tests/fixed_fits.py --compare FILE`` after
it, on the same machine. Run each twice and keep the second: loops that Numba has just compiled may differ in the last
bit from the same loops loaded from its cache. ``tests/test_fixed_fits.py`` compares the summaries in
``tests/fixed_fits.json`` on any machine, within a tolerance.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_diabetes, load_digits, load_iris

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor

Results = dict[str, np.ndarray]


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
    """For every result, its size, sum, sum of absolute values, first and last number."""
    found = {}
    for name, values in results.items():
        flat = np.asarray(values, dtype=np.float64).ravel()
        finite = flat[np.isfinite(flat)]
        found[name] = [float(len(flat)), finite.sum(), np.abs(finite).sum(), float(finite[0]), float(finite[-1])]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--summaries", type=Path, help="write the summaries that tests/test_fixed_fits.py compares")
    options = parser.parse_args()
    digests, summaries = {}, {}
    for name, fit in FITS.items():
        began = time.perf_counter()
        results = fit()
        digests[name], summaries[name] = digest(results), summarize(results)
        print(f"{name:20s} {time.perf_counter() - began:6.2f} s", flush=True)
    for path, content in ((options.save, digests), (options.summaries, summaries)):
        if path is not None:
            path.write_text(json.dumps(content, indent=1) + "\n")
    if options.compare is None:
        return 0
    before = json.loads(options.compare.read_text())
    changed = [f"{fit}.{key}" for fit, keys in before.items() for key in keys if digests[fit].get(key) != keys[key]]
    print("same bits" if not changed else "changed: " + ", ".join(changed))
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())

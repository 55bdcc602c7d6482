"""The same fit in memory and on a local Dask cluster of two processes, once with a worker killed during the fit.

python benchmarks/scale_dask.py                 # 200,000 samples, m = 200; writes results/benchmarks/scale_dask.json
python benchmarks/scale_dask.py --samples 20000
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from scale_points import mixture

from distreduce import SDR
from distreduce.exceptions import SolverConvergenceWarning
from distreduce_paper.measure import describe_machine, package_versions

Array = NDArray[Any]
PARTITIONS = 20
OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "scale_dask.json"


def main() -> None:
    """Run the three fits, print them, and write them."""
    options = _options()
    warnings.simplefilter("ignore", SolverConvergenceWarning)
    X, y = mixture(options.samples, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)  # workers read their partitions from this file
        _fit(X[:5000], y[:5000], options)  # compiles the loops
        here, row = _fit(X, y, options)
        rows = [{"where": "in memory, two threads", **row}]
        n, d = X.shape
        del X  # the client must not hold the rows while the cluster fits
        rows.append({"where": "cluster, two processes", **_on_cluster(path, (n, d), y, options, here)})
        # Half-way through a fit as long as the one before.
        killed_after = 0.5 * rows[-1]["seconds"]
        lost = _on_cluster(path, (n, d), y, options, here, killed_after)
        rows.append({"where": "cluster, one worker killed", "killed_after_seconds": killed_after, **lost})
    for line in rows:
        print(json.dumps(line))
    report = {"samples": n, "features": d, "prototypes": options.prototypes, "runs": rows}
    report |= {"machine": describe_machine(), "versions": package_versions()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--prototypes", type=int, default=200)
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


def _fit(X: Any, y: Array, options: argparse.Namespace) -> tuple[SDR, dict[str, Any]]:
    """Fit, and return the model with its seconds."""
    model = SDR(n_prototypes=options.prototypes, eta="auto", affinity="sparse", n_jobs=2, random_state=0)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return model, {"seconds": round(seconds, 1), "n_iter": model.n_iter_, "objective": model.objective_}


def _on_cluster(
    path: Path,
    shape: tuple[int, int],
    y: Array,
    options: argparse.Namespace,
    known: SDR,
    killed_after: float | None = None,
) -> dict[str, Any]:
    """Fit on two worker processes of one thread each, and compare the bits with the fit in memory."""
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
    )
    with cluster, Client(cluster) as client:
        if killed_after is not None:
            # SIGKILL, as if the machine of the worker were lost.
            pid = next(iter(client.run(os.getpid).values()))
            threading.Timer(killed_after, os.kill, (pid, signal.SIGKILL)).start()
        model, row = _fit(_rows(path, shape), y, options)
        peaks = client.run(_peak_gigabytes)
    same = np.array_equal(model.embedding_, known.embedding_) and (model.coupling_ != known.coupling_).nnz == 0
    return {**row, "same_bits": bool(same), "peak_gigabytes_of_workers": sorted(peaks.values())}


def _rows(path: Path, shape: tuple[int, int]) -> Any:
    """Return the rows as a Dask array; each partition is read from the file by the worker that needs it."""
    borders = np.linspace(0, shape[0], PARTITIONS + 1).astype(int)
    read = delayed(_read, pure=False)
    return da.concatenate(
        [
            da.from_delayed(read(path, start, stop), (stop - start, shape[1]), dtype=float)
            for start, stop in zip(borders[:-1], borders[1:], strict=True)
        ]
    )


def _read(path: Path, start: int, stop: int) -> Array:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def _peak_gigabytes() -> float:
    import resource

    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2, 2)


if __name__ == "__main__":
    main()

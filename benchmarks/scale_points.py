"""One point of scale.py, in its own process: make the data, warm up, fit, and report the cost.

Nothing here imports torch: its 300 MB would count as ours.
"""

from __future__ import annotations

import gc
import os
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from distreduce import SDR
from distreduce.affinity import neighbours
from distreduce.metrics import reduction_scores
from distreduce.sharding.rows import Rows
from distreduce.sharding.shards import Shard, ShardPass
from distreduce.solver import sharded
from distreduce_paper import Cell, problems
from distreduce_paper.measure import describe_machine, measure, package_versions
from distreduce_paper.methods import REDUCTIONS

Array = NDArray[Any]
SPARSE, DENSE, PAPER, UMAP = "SDR, sparse", "SDR, dense", "SDR, paper's algorithm", "UMAP, supervised"
N_FEATURES, N_COMPONENTS, N_CLASSES = 50, 100, 10
# Times unit noise: a sample's nearest centre is another component's for 3 % of the samples.
CENTRE_SCALE = 0.7
RECALL_ROWS = 1000
# Below 4096 samples umap-learn compares all pairs, and its search for neighbours would not be compiled.
WARM_UP_ROWS = {UMAP: 5000}


def mixture(n: int, seed: int) -> tuple[Array, Array]:
    """n samples of 100 Gaussians in 50 dimensions, and their classes: the component's number modulo ten."""
    random = np.random.default_rng(seed)
    centres = CENTRE_SCALE * random.standard_normal((N_COMPONENTS, N_FEATURES))
    component = random.integers(N_COMPONENTS, size=n)
    X = random.standard_normal((n, N_FEATURES))
    # In place: a sum would hold the samples twice.
    X += centres[component]
    return X, component % N_CLASSES


def estimator(cell: Cell) -> Any:
    """Return the unfitted estimator of the cell. umap-learn gets no seed, because with one it uses a single core."""
    settings: dict[str, Any] = dict(cell.parameters)
    m, perplexity, threads = settings["m"], settings["perplexity"], settings["threads"]
    if cell.method == UMAP:
        import umap

        return umap.UMAP(n_neighbors=50, min_dist=0.1, target_metric="categorical", n_jobs=threads)
    if cell.method == PAPER:
        return REDUCTIONS[PAPER](m, perplexity, cell.seed).set_params(affinity="dense", n_jobs=threads)
    affinity = {SPARSE: "sparse", DENSE: "dense"}[cell.method]
    model = SDR(n_prototypes=m, perplexity=perplexity, eta="auto", random_state=cell.seed)
    return model.set_params(affinity=affinity, n_jobs=threads)


def warm_up(cell: Cell) -> None:
    """Fit few samples first, so that the time of the real fit does not include Numba's compilation."""
    model = estimator(cell)
    if isinstance(model, SDR):
        model.set_params(max_iter=2)
    model.fit(*mixture(WARM_UP_ROWS.get(cell.method, 3000), seed=1))


# The original functions, which `Watch` replaces during a fit.
_ARRANGE, _KEEP_NEIGHBOURS = Rows.arrange, neighbours.keep_neighbours


class Watch:
    """Times the search for neighbours during a fit on shards, and keeps some rows of the graph that it finds."""

    def __init__(self) -> None:
        self.arrange_seconds = self.neighbour_seconds = self.own_seconds = 0.0
        self.k = 0

    def arrange(self, *arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        found = _ARRANGE(*arguments, **named)
        self.arrange_seconds = time.perf_counter() - began
        self.order = found.merged.rows
        return found

    def keep_neighbours(self, shards: Any, k: int, *arguments: Any) -> None:
        began = time.perf_counter()
        _KEEP_NEIGHBOURS(shards, k, *arguments)
        ended = time.perf_counter()
        n = len(self.order)
        self.k, self.rows = k, np.sort(np.random.default_rng(0).permutation(n)[:RECALL_ROWS])
        chosen = np.isin(np.arange(n), self.rows)
        self.links = [row for part in shards.collect(_Links(chosen)) for row in part]
        # Collecting the rows is our own work: its seconds are subtracted from the fit's.
        self.neighbour_seconds, self.own_seconds = ended - began, time.perf_counter() - ended

    def recall(self, X: Array) -> float:
        """Share of the k nearest samples, by brute force, that the graph links with a sample; mean over the rows."""
        samples = X[self.order]
        # One more than k, because a sample is its own nearest neighbour.
        search = NearestNeighbors(n_neighbors=self.k + 1, algorithm="brute").fit(samples)
        nearest = search.kneighbors(samples[self.rows], return_distance=False)
        exact = [found[found != row][: self.k] for row, found in zip(self.rows, nearest, strict=True)]
        return float(np.mean([np.isin(one, links).mean() for one, links in zip(exact, self.links, strict=True)]))


def in_metric(model: Any, X: Array) -> Array:
    """Return the features in the metric of the fit, in which it sought the neighbours; only their ratios matter."""
    lengths = np.asarray(model.map_.kernel.length_scale)
    return X if lengths.ndim == 0 else X / lengths[: X.shape[1]]


@dataclass(frozen=True)
class _Links(ShardPass[list[Array]]):
    """The samples that the chosen rows of a shard's graph are linked with."""

    reads = ("graph",)
    per_sample = ("chosen",)
    chosen: Array

    def __call__(self, shard: Shard) -> list[Array]:
        graph = shard.graph
        return [graph.indices[graph.indptr[row] : graph.indptr[row + 1]].copy() for row in np.flatnonzero(self.chosen)]


def measure_point(cell: Cell, seconds: float) -> dict[str, Any]:
    """Measure a cell; the system ends this process (SIGALRM) if the fit itself takes longer than `seconds`."""
    load = os.getloadavg()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that reaches its iteration limit is measured too
        warm_up(cell)
        X, y = problems.load_whole(cell.data, cell.seed) if cell.data == "fashion" else mixture(_size(cell), cell.seed)
        model, watch = estimator(cell), Watch()
        before, cost = _timed_fit(lambda: model.fit(X, y), watch, seconds)
        result = {"before_mb": before, **_outcome(model, watch, X, y)}
    if watch.k:
        result["after_seconds"] = cost["seconds"] - watch.arrange_seconds - watch.neighbour_seconds
    return (
        cell.as_dict()
        | cost
        | {"result": result, "machine": describe_machine(), "versions": package_versions(), "load": load}
    )


def _timed_fit(fit: Callable[[], Any], watch: Watch, limit: float) -> tuple[float, dict[str, float]]:
    """Return resident MB before the fit, and its seconds, CPU seconds and peak resident MB."""
    gc.collect()  # memory of the warm-up must not count as this fit's
    before = _resident_mb()
    stages = (
        patch.object(Rows, "arrange", lambda rows, *given: watch.arrange(rows, *given)),
        patch.object(sharded, "keep_neighbours", watch.keep_neighbours),
    )
    signal.setitimer(signal.ITIMER_REAL, limit)
    with stages[0], stages[1], measure() as cost:
        fit()
    signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = cost.seconds - watch.own_seconds
    return before, {"seconds": seconds, "cpu_seconds": cost.cpu_seconds, "peak_mb": cost.peak_mb}


def _outcome(model: Any, watch: Watch, X: Array, y: Array) -> dict[str, Any]:
    """Return the scores of a reduction and, if neighbours were searched for, their seconds and recall."""
    found: dict[str, Any] = {}
    if isinstance(model, SDR):
        used = int(np.count_nonzero(model.prototype_weights_))
        found |= {**reduction_scores(model, y), "used": used}
        found |= {"iterations": model.n_iter_, "converged": bool(model.converged_)}
    if watch.k:
        found |= {"arrange_seconds": watch.arrange_seconds, "neighbour_seconds": watch.neighbour_seconds}
        found |= {"k": watch.k, "recall": watch.recall(in_metric(model, X))}
    return found


def _size(cell: Cell) -> int:
    return int(str(cell.parameters["n"]))


def _resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2

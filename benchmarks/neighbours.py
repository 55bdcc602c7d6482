"""The search for neighbours of a fit on shards against libraries of approximate neighbours: seconds and recall.

    pip install faiss-cpu hnswlib usearch      # pynndescent comes with umap-learn
    python benchmarks/neighbours.py

Every search gets scale.py's mixture and finds the 90 nearest samples of each, as a fit with perplexity 30 does. Links
count in both directions, as in the graph of a fit. Each point is a process of its own with two threads; a search of few
samples warms up and does not count. At 100,000 samples each search runs again with one thread, which shows whether
its result depends on that. Results are appended to results/benchmarks/neighbours.jsonl, which the same command resumes,
and neighbours.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scale_points import RECALL_ROWS, mixture
from sklearn.neighbors import NearestNeighbors

from distreduce._utils.threads import Workers, single_threaded_blas
from distreduce.affinity.neighbours import keep_neighbours, whole_graph
from distreduce.sharding.rows import LocalRows

Array = NDArray[Any]
# From samples to what each is linked with, in ascending order.
Links = Callable[[Array], list[Array]]
K = 90
WARM_UP = 20_000  # ours has cells from some ten thousand on
SIZES, TWICE = (100_000, 1_000_000), 100_000
RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"


def search_cells(X: Array, threads: int) -> Links:
    """Ours, as a fit does it."""
    with closing(Workers(threads)) as workers, single_threaded_blas():
        rows = LocalRows(X, workers)
        arranged = rows.arrange(rows.merge(None, np.ones(len(X))), 1.0, np.random.RandomState(0))
        sample = rows.to_shards(1.0, None, None, arranged)
        keep_neighbours(sample.shards, K, sample.probes)
    return lambda samples: _links_of_cells(whole_graph(sample.shards), arranged.merged.rows, samples)


def _links_of_cells(graph: Any, order: Array, samples: Array) -> list[Array]:
    places = np.argsort(order)[samples]
    return [np.sort(order[graph.indices[graph.indptr[place] : graph.indptr[place + 1]]]) for place in places]


def both_directions(found: Array) -> Links:
    """Links of the k nearest (n, k) that a library has found."""

    def links(samples: Array) -> list[Array]:
        others, places = np.nonzero(np.isin(found, samples))
        pairs = np.c_[found[others, places], others]
        return [np.union1d(found[one], pairs[pairs[:, 0] == one, 1]) for one in samples]

    return links


def search_pynndescent(X: Array, threads: int) -> Links:
    """NN-descent, with its defaults."""
    from pynndescent import NNDescent

    return both_directions(NNDescent(X, n_neighbors=K + 1, random_state=0, n_jobs=threads).neighbor_graph[0])


def search_hnswlib(X: Array, threads: int, effort: int) -> Links:
    """A navigable small world of 16 links per sample."""
    import hnswlib

    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), ef_construction=100, M=16, random_seed=0)
    index.add_items(X, num_threads=threads)
    index.set_ef(effort)
    return both_directions(index.knn_query(X, K + 1, num_threads=threads)[0])


def search_usearch(X: Array, threads: int, effort: int) -> Links:
    """The same kind of index in another library."""
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="l2sq", connectivity=16, expansion_add=100, expansion_search=effort)
    index.add(np.arange(len(X)), X, threads=threads)
    return both_directions(np.asarray(index.search(X, K + 1, threads=threads).keys))


def search_faiss(X: Array, threads: int, probes: int) -> Links:
    """Cells of k-means, `probes` of which are searched for every sample."""
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.index_factory(X.shape[1], f"IVF{int(2 * len(X) ** 0.5)},Flat")
    index.train(X[: 50 * index.nlist])
    index.add(X)
    index.nprobe = probes
    return both_directions(index.search(X, K + 1)[1])


SEARCHES: dict[str, tuple[Callable[..., Links], dict[str, int]]] = {
    "distreduce": (search_cells, {}),
    "faiss-cpu, IVF, 8 cells": (search_faiss, {"probes": 8}),
    "faiss-cpu, IVF, 32 cells": (search_faiss, {"probes": 32}),
    "hnswlib, ef 91": (search_hnswlib, {"effort": K + 1}),
    "hnswlib, ef 200": (search_hnswlib, {"effort": 200}),
    "usearch, expansion 91": (search_usearch, {"effort": K + 1}),
    "usearch, expansion 200": (search_usearch, {"effort": 200}),
    "pynndescent": (search_pynndescent, {}),
}


def measure(method: str, n: int) -> dict[str, Any]:
    """Seconds, recall, and at `TWICE` samples the share of samples with the same links with one thread."""
    search, options = SEARCHES[method]
    search(mixture(WARM_UP, seed=1)[0].astype(np.float32), 2, **options)
    X = mixture(n, seed=0)[0].astype(np.float32)
    began, cpu = time.perf_counter(), time.process_time()
    found = search(X, 2, **options)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    samples = np.sort(np.random.default_rng(0).permutation(n)[:RECALL_ROWS])
    links = found(samples)
    record = {"method": method, "n": n, "seconds": seconds, "cpu": cpu, "recall": recall(X, samples, links)}
    if n == TWICE:
        alone = search(X, 1, **options)(samples)
        record["same"] = float(np.mean([np.array_equal(one, other) for one, other in zip(alone, links, strict=True)]))
    return record | {"load": os.getloadavg()[0]}


def recall(X: Array, samples: Array, links: list[Array]) -> float:
    """Share of the k nearest, by brute force, that are linked with a sample; mean over the samples."""
    nearest = (
        NearestNeighbors(n_neighbors=K + 1, algorithm="brute").fit(X).kneighbors(X[samples], return_distance=False)
    )
    exact = [found[found != one][:K] for one, found in zip(samples, nearest, strict=True)]
    return float(np.mean([np.isin(one, linked).mean() for one, linked in zip(exact, links, strict=True)]))


def write(records: list[dict[str, Any]]) -> str:
    """One line per size and search."""
    lines = [
        "# Searches for neighbours\n",
        f"`python benchmarks/neighbours.py`: the {K} nearest neighbours of all samples of scale.md's mixture, in "
        "single precision, with two threads, index included. *Recall* is the share of true neighbours (brute force) "
        f"that are linked with a sample in either direction, for {RECALL_ROWS:,} samples. *Same* is the share of these "
        "samples with the same links when one thread does the search.\n",
        "| n | search | seconds | CPU seconds | recall | same |",
        "|---|---|---|---|---|---|",
    ]
    for r in sorted(records, key=lambda r: (r["n"], list(SEARCHES).index(r["method"]))):
        same = f"{r['same']:.4f}" if "same" in r else ""
        lines.append(
            f"| {r['n']:,} | {r['method']} | {r['seconds']:.1f} | {r['cpu']:.1f} | {r['recall']:.3f} | {same} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is not stored, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=SIZES)
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--point", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.point:
        print(json.dumps(measure(options.point[0], int(options.point[1]))))
        return
    log = options.out / "neighbours.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for n in options.samples:
        for method in options.searches:
            if any((r["method"], r["n"]) == (method, n) for r in records):
                continue
            command = [sys.executable, __file__, "--point", method, str(n)]
            child = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            records.append(json.loads(child.stdout.splitlines()[-1]))
            print(json.dumps(records[-1]), flush=True)
            with log.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
    (options.out / "neighbours.md").write_text(write(records))


if __name__ == "__main__":
    main()

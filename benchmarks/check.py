"""`make bench-check`: a few ratios of seconds, ours against the yardstick's, compared with those stored.

Ratios, not seconds: a slower machine slows both. The yardsticks are torch, SciPy and POT on the same problem in the
same process, one thread each. Fails if a ratio is a fifth lower than the stored one; `--save` stores new ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yardstick
from problems import PAPER, coupling_problem, embedding_problem, mixture, reduction_problem
from scipy.spatial.distance import cdist

from distreduce._utils.numerics import sq_distances
from distreduce._utils.threads import workers
from distreduce.affinity import student_affinity, symmetric_entropic_affinity
from distreduce.coupling.descent import solve_semirelaxed
from distreduce.embedding.optimize import make_objective
from distreduce.solver.loop import solve

STORED = Path(__file__).resolve().parent.parent / "results" / "benchmarks" / "check.json"
LOSS = 0.8  # of the stored ratio
ROUNDS = 15
N, M = 1440, 100


def cpu_seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> float:
    """Least CPU seconds of theirs over ours; the two take turns, so that a busy machine disturbs both."""
    ours(), theirs()  # compiles, and fills caches
    rounds = [(cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(ROUNDS)]
    least_ours, least_theirs = np.min(rounds, axis=0)
    return float(least_theirs / least_ours)


def measure() -> dict[str, float]:
    """How many times faster than its yardstick each piece of a fit is."""
    data = mixture(N)
    problem = reduction_problem(data, M, 1)
    Z = solve(problem, replace(PAPER, max_iter=0)).prototypes
    bsfgw, D = coupling_problem(problem, Z), cdist(data.X, data.X, "sqeuclidean")
    fused, C_bar = make_objective(embedding_problem(problem), "numba"), student_affinity(Z)
    plan, z = problem.plan.toarray(), torch.from_numpy(Z)
    autograd = yardstick.embedding_objective(problem, plan, PAPER.alpha, PAPER.eta, torch.float64, reduced=True)
    return {
        "affinity / 20 steps of Adam on the dual": ratio(
            lambda: symmetric_entropic_affinity(D, 20.0), lambda: yardstick.affinity(D, 20.0, 1.0, steps=20)
        ),
        "T-step / POT": ratio(
            lambda: solve_semirelaxed(bsfgw, problem.plan),
            lambda: yardstick.couple(problem, plan, C_bar, PAPER.alpha),
        ),
        "Z-step / autograd": ratio(lambda: fused(Z), lambda: autograd.value_and_gradient(z)),
        "distances / SciPy": ratio(lambda: sq_distances(data.X), lambda: cdist(data.X, data.X, "sqeuclidean")),
    }


def main() -> None:
    """Measure, print beside the stored ratios, and store or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="store these ratios instead of comparing")
    save = parser.parse_args().save
    torch.set_num_threads(1)
    with workers(1):
        found = measure()
    stored = found if save or not STORED.exists() else json.loads(STORED.read_text())
    slower = [name for name, value in found.items() if value < LOSS * stored.get(name, 0.0)]
    for name, value in found.items():
        print(f"{name:45s} {value:6.2f}  (stored {stored.get(name, float('nan')):.2f})")
    if save:
        STORED.write_text(json.dumps(found, indent=2) + "\n")
    sys.exit(f"slower than stored by more than a fifth: {'; '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()

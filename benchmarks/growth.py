"""Part 5: how the seconds of our solver grow with the number of samples n and of prototypes m."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from problems import PERPLEXITY, coupling_problem, embedding_problem, mixture, reduction_problem
from report import Row
from timing import exponent, median_seconds, timed

from distreduce import SDR
from distreduce._utils.threads import workers
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.coupling.descent import solve_semirelaxed
from distreduce.embedding.optimize import make_objective

PART = "5 growth of ours"


@dataclass(frozen=True)
class Sweep:
    """The sizes to measure: n varies at `fixed_m`, and m varies at `fixed_n`."""

    n: Sequence[int]
    m: Sequence[int]
    fixed_m: int
    fixed_n: int


FULL = Sweep((500, 1000, 2000, 4000, 8000), (50, 100, 200, 400, 800, 1600), 100, 2000)
QUICK = Sweep((250, 500, 1000), (25, 50, 100), 50, 500)


def growth(sweep: Sweep, n_threads: int, advance: Callable[[str], None]) -> list[Row]:
    """Return one row per step and variable: seconds at the largest size, and the exponent over all sizes."""
    measured: dict[str, list[tuple[int, float]]] = {}
    for n in sweep.n:
        advance(f"growth: n={n}")
        _add(measured, "affinity over n", n, _affinity(n, n_threads))
        _add(measured, f"coupling step over n (m={sweep.fixed_m})", n, _steps(n, sweep.fixed_m, n_threads)[1])
        _add(measured, f"SDR.fit over n (m={sweep.fixed_m})", n, _fit(n, sweep.fixed_m, n_threads))
    for m in sweep.m:
        advance(f"growth: m={m}")
        embedding, coupling = _steps(sweep.fixed_n, m, n_threads)
        _add(measured, "embedding step over m", m, embedding)
        _add(measured, f"coupling step over m (n={sweep.fixed_n})", m, coupling)
        _add(measured, f"SDR.fit over m (n={sweep.fixed_n})", m, _fit(sweep.fixed_n, m, n_threads))
    return [_row(name, points) for name, points in measured.items()]


def _add(measured: dict[str, list[tuple[int, float]]], name: str, size: int, seconds: float) -> None:
    measured.setdefault(name, []).append((size, seconds))


def _row(name: str, points: list[tuple[int, float]]) -> Row:
    sizes, seconds = zip(*points, strict=True)
    slope, error = exponent(sizes, seconds)
    # Small sizes flatten the slope by their fixed costs; the last two show the limit better.
    last, _ = exponent(sizes[-2:], seconds[-2:])
    note = ", ".join(f"{size}: {taken:.3g} s" for size, taken in points) + f"; over the last two sizes {last:.2f}"
    return Row(PART, name, f"ours, at {sizes[-1]}", seconds[-1], None, "exponent", slope, error, note)


def _affinity(n: int, n_threads: int) -> float:
    with workers(n_threads) as pool:
        # The distances are an input of the affinity and not timed.
        D = squared_distances(mixture(n).X, workers=pool)
        return median_seconds(lambda: symmetric_entropic_affinity(D, PERPLEXITY, workers=pool), 3)


def _steps(n: int, m: int, n_threads: int) -> tuple[float, float]:
    """Time one embedding step and one coupling step, from a random plan and a random embedding."""
    problem = reduction_problem(mixture(n), m, n_threads, init="random")
    Z = np.random.default_rng(0).standard_normal((m, 2))
    # The T-step is timed at the same random embedding as the Z-step.
    bsfgw = coupling_problem(problem, Z)
    with workers(n_threads) as pool:
        objective = make_objective(embedding_problem(problem), workers=pool)
        embedding = median_seconds(lambda: objective(Z), 25)
        return embedding, median_seconds(lambda: solve_semirelaxed(bsfgw, problem.plan, workers=pool), 3)


def _fit(n: int, m: int, n_threads: int) -> float:
    """Time one fit with default parameters."""
    data, model = mixture(n), SDR(n_prototypes=m, perplexity=PERPLEXITY, n_jobs=n_threads, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that reaches its iteration limit is measured too
        return timed(lambda: model.fit(data.X, data.y))[1]

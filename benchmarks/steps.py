"""Parts 1 to 3: one embedding step, one affinity, one coupling step."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
import torch
import yardstick
from numpy.typing import NDArray
from problems import PAPER, PERPLEXITY, Labelled, coupling_problem, embedding_problem, mixture, reduction_problem
from report import Row
from scipy import sparse
from timing import median_seconds, threads_of, timed, yardstick_seconds, yardstick_threads

from distreduce import SDR
from distreduce._utils.threads import workers
from distreduce.affinity import squared_distances, student_affinity, symmetric_entropic_affinity
from distreduce.affinity.symmetric import row_bandwidths
from distreduce.coupling.descent import solve_semirelaxed
from distreduce.coupling.problem import affinity_times_plan, structure_constant
from distreduce.embedding import plain
from distreduce.embedding.optimize import make_objective
from distreduce.embedding.plain import EmbeddingProblem
from distreduce.solver.dense import DenseOracle
from distreduce.solver.loop import solve

Array = NDArray[np.float64]
Step = tuple[str, float, Array]
DTYPES = {"float64": torch.float64, "float32": torch.float32}
LEARNING_RATES = (1.0, 0.1, 0.01)


def embedding_step(m: int, n_threads: int) -> list[Row]:
    """Time value and gradient at m prototypes in two dimensions, with 1440 samples or, if m is larger, with m."""
    n = max(m, 1440)
    problem = reduction_problem(mixture(n), m, n_threads, init="identity" if n == m else "random")
    small, Z = embedding_problem(problem), np.random.default_rng(0).standard_normal((m, 2))
    # The plain float64 gradient is the reference of all errors.
    exact = plain.value_and_gradient(small, Z)[1]
    fused = _fused_steps(small, Z, n_threads)
    # All ratios are to our objective with all threads.
    ours = fused[-1][1]
    return [
        Row("1 embedding step", f"m={m}, n={n}, p=2", name, seconds, seconds / ours, "gradient's relative error",
            float(np.abs(gradient - exact).max() / np.abs(exact).max()))
        for name, seconds, gradient in [*fused, *_autograd_steps(problem, Z, n_threads)]
    ]  # fmt: skip


def _fused_steps(problem: EmbeddingProblem, Z: Array, n_threads: int) -> list[Step]:
    """Time our objective with one thread and with all, the latter last."""
    taken: list[Step] = []
    for threads in sorted({1, n_threads}):
        with workers(threads) as pool:
            fused = make_objective(problem, workers=pool)
            seconds = median_seconds(lambda f=fused: f(Z), 25)
            taken.append((f"ours, fused, {threads_of(threads)}", seconds, fused(Z)[1]))
    return taken


def _autograd_steps(problem: DenseOracle, Z: Array, n_threads: int) -> list[Step]:
    """Time autograd on the m×m objective and on the full one, each in both precisions."""
    plan, taken = problem.plan.toarray(), []
    for form in ("reduced to m×m", "full n"):
        for name, dtype in DTYPES.items():
            objective = yardstick.embedding_objective(problem, plan, PAPER.alpha, PAPER.eta, dtype, form != "full n")
            z = torch.from_numpy(Z).to(dtype)
            seconds, threads = yardstick_seconds(lambda f=objective, z=z: f.value_and_gradient(z), n_threads)
            gradient = objective.value_and_gradient(z)[1].double().numpy()
            taken.append((f"torch autograd, {form}, {name}, {threads_of(threads)}", seconds, gradient))
    return taken


def affinity(data: Labelled, n_threads: int) -> list[Row]:
    """Time the symmetric entropic affinity: Newton's method on the dual against Adam at the paper's learning rates."""
    D = squared_distances(data.X)
    weights = np.ones(len(D))
    scale = row_bandwidths(D, PERPLEXITY, weights).gamma
    with workers(n_threads) as pool:
        found = symmetric_entropic_affinity(D, PERPLEXITY, workers=pool)
        ours = median_seconds(lambda: symmetric_entropic_affinity(D, PERPLEXITY, workers=pool), 3)
    case = f"{data.name}, perplexity {PERPLEXITY:g}"
    residual = yardstick.kkt_residual(found.matrix, found.gamma, weights, PERPLEXITY, scale)
    rows = [Row("2 affinity", case, "ours", ours, 1.0, "KKT residual", residual, note=f"{found.n_evaluations} passes")]
    # Three steps decide how many threads suit the yardstick.
    _, threads = yardstick_seconds(lambda: yardstick.affinity(D, PERPLEXITY, 0.01, steps=3), n_threads)
    for rate in LEARNING_RATES:
        with yardstick_threads(threads):
            adam, seconds = timed(lambda rate=rate: yardstick.affinity(D, PERPLEXITY, rate))
        method = f"Adam on the dual, lr {rate:g}, {threads_of(threads)}"
        # A diverged run has seconds but no solution to compare.
        if adam.broke:
            rows.append(Row("2 affinity", case, method, seconds, note=f"not a number at step {adam.n_iter}"))
            continue
        residual = yardstick.kkt_residual(adam.matrix, adam.gamma, weights, PERPLEXITY, scale)
        note = f"{adam.n_iter} steps"
        rows.append(Row("2 affinity", case, method, seconds, seconds / ours, "KKT residual", residual, note=note))
    return rows


def coupling_step(data: Labelled, m: int, n_threads: int) -> list[Row]:
    """Time one T-step from the spectral plan, at the embedding that our solver finds for that plan."""
    problem = reduction_problem(data, m, n_threads)
    with workers(n_threads) as pool:
        Z = solve(replace(problem, workers=pool), replace(PAPER, max_iter=0)).prototypes
        bsfgw = coupling_problem(problem, Z)
        found = solve_semirelaxed(bsfgw, problem.plan, workers=pool)
        ours = median_seconds(lambda: solve_semirelaxed(bsfgw, problem.plan, workers=pool))
    # Our T-step drops a term that does not depend on T; the table shows the full value.
    constant = PAPER.alpha * structure_constant(problem.affinity, problem.sample.weights, PAPER.loss)

    def value(plan: sparse.csr_array) -> float:
        return constant + bsfgw.value(plan, affinity_times_plan(problem.affinity, plan) @ bsfgw.h2)

    taken = [("ours", ours, found.plan, f"{found.n_iter} iterations")]
    taken += _pot_couplings(problem, student_affinity(Z), n_threads)
    case, measure = f"{data.name}, m={m}", f"BSFGW (start {value(problem.plan):.6g})"
    return [
        Row("3 coupling step", case, name, seconds, seconds / ours, measure, value(plan), note=note)
        for name, seconds, plan, note in taken
    ]


def _pot_couplings(
    problem: DenseOracle, embedding_affinity: Array, n_threads: int
) -> list[tuple[str, float, sparse.csr_array, str]]:
    """Time POT called once, and repeatedly with refreshed prototype targets until the plan stays."""
    plan, calls = problem.plan.toarray(), 0

    def call(plan: Array) -> Array:
        return yardstick.couple(problem, plan, embedding_affinity, PAPER.alpha)

    once, threads = yardstick_seconds(lambda: call(problem.plan.toarray()), n_threads)
    with yardstick_threads(threads):
        first, began = call(plan), time.perf_counter()
        moving = True
        while moving and calls < 50:
            previous, plan = plan, call(plan)
            moving, calls = bool(np.abs(plan - previous).max() > 1e-9), calls + 1
        again = time.perf_counter() - began
    end = threads_of(threads)
    return [
        (f"POT, one call, {end}", once, sparse.csr_array(first), ""),
        (f"POT, targets refreshed until the plan stays, {end}", again, sparse.csr_array(plan), f"{calls} calls"),
    ]


def warm_up(n_threads: int) -> None:
    """Compile every loop, in both precisions, on a small problem, before anything is measured."""
    data = mixture(200)
    problem = reduction_problem(data, 20, n_threads)
    D = squared_distances(data.X, np.float32)
    with warnings.catch_warnings(), workers(n_threads) as pool:
        warnings.simplefilter("ignore")
        single = symmetric_entropic_affinity(D, PERPLEXITY, workers=pool).matrix
        for C in (problem.affinity, single):
            solve(replace(problem, affinity=C, workers=pool), replace(PAPER, max_iter=2))
        SDR(n_prototypes=20, max_iter=2).fit(data.X, data.y)

"""Parts 1 to 3: one embedding step, one affinity, one coupling step."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
import torch
import yardstick
from numpy.typing import NDArray
from problems import PAPER, PERPLEXITY, Labelled, embedding_problem, mixture, reduction_problem
from report import Row
from scipy import sparse
from timing import median_seconds, timed, yardstick_threads

from distreduce.affinity import entropic_affinity, squared_distances, student_affinity, symmetric_entropic_affinity
from distreduce.affinity.reference import kkt_residual
from distreduce.coupling import (
    CouplingProblem,
    affinity_times_plan,
    solve_semirelaxed,
    structure_constant,
    structure_matrices,
)
from distreduce.embedding import make_objective, plain
from distreduce.parallel import workers
from distreduce.solve import ReductionProblem, solve

Array = NDArray[np.float64]
DTYPES = {"float64": torch.float64, "float32": torch.float32}
LEARNING_RATES = (1.0, 0.1, 0.01)


def embedding_step(m: int, n_threads: int) -> list[Row]:
    """Value and gradient at m prototypes in two dimensions, of 1440 samples or, if m is larger, of m."""
    n = max(m, 1440)
    problem = reduction_problem(mixture(n), m, n_threads, init="identity" if n == m else "random")
    small, Z = embedding_problem(problem), np.random.default_rng(0).standard_normal((m, 2))
    exact = plain.value_and_gradient(small, Z)[1]
    taken: list[tuple[str, float, Array]] = []
    for threads in sorted({1, n_threads}):
        with workers(threads) as pool:
            fused = make_objective(small, workers=pool)
            taken.append((f"ours, fused, {threads} threads", median_seconds(lambda f=fused: f(Z), 25), fused(Z)[1]))
    taken += _autograd_steps(problem, Z, n_threads)
    ours = taken[-5][1]
    return [
        Row("1 embedding step", f"m={m}, n={n}, p=2", name, seconds, seconds / ours, "gradient's relative error",
            float(np.abs(gradient - exact).max() / np.abs(exact).max()))
        for name, seconds, gradient in taken
    ]  # fmt: skip


def _autograd_steps(problem: ReductionProblem, Z: Array, n_threads: int) -> list[tuple[str, float, Array]]:
    """The m×m objective and the full one through autograd, each in both precisions."""
    plan, taken = problem.plan.toarray(), []
    for form in ("reduced to m×m", "full n"):
        for name, dtype in DTYPES.items():
            objective = yardstick.Embedding(problem, plan, PAPER.alpha, PAPER.eta, dtype)
            if form != "full n":
                objective.reduced()
            z = torch.from_numpy(Z).to(dtype)
            with yardstick_threads(n_threads):
                seconds = median_seconds(lambda f=objective, z=z: f.value_and_gradient(z))
                gradient = objective.value_and_gradient(z)[1].double().numpy()
            taken.append((f"torch autograd, {form}, {name}", seconds, gradient))
    return taken


def affinity(data: Labelled, n_threads: int, repeats: int = 3) -> list[Row]:
    """The symmetric entropic affinity: Newton's method on the dual against Adam at the paper's learning rates."""
    D = squared_distances(data.X)
    weights, scale = np.ones(len(D)), entropic_affinity(D, PERPLEXITY).gamma
    with workers(n_threads) as pool:
        found = symmetric_entropic_affinity(D, PERPLEXITY, workers=pool)
        ours = median_seconds(lambda: symmetric_entropic_affinity(D, PERPLEXITY, workers=pool), repeats)
    case = f"{data.name}, perplexity {PERPLEXITY:g}"
    residual = kkt_residual(found.matrix, found.gamma, weights, PERPLEXITY, scale)
    rows = [Row("2 affinity", case, "ours", ours, 1.0, "KKT residual", residual, note=f"{found.n_evaluations} passes")]
    for rate in LEARNING_RATES:
        with yardstick_threads(n_threads):
            adam, seconds = timed(lambda rate=rate: yardstick.affinity(D, PERPLEXITY, rate))
        broke = adam.broke_at is not None
        residual = np.inf if broke else kkt_residual(adam.matrix, adam.gamma, weights, PERPLEXITY, scale)
        note = f"not a number at step {adam.broke_at}" if broke else f"{adam.n_iter} steps"
        rows.append(Row("2 affinity", case, f"Adam on the dual, lr {rate:g}", seconds, None if broke else seconds / ours,
                        "KKT residual", residual, note=note))  # fmt: skip
    return rows


def coupling_step(data: Labelled, m: int, n_threads: int) -> list[Row]:
    """One T-step from the spectral plan, at the embedding that ours finds for that plan."""
    problem = reduction_problem(data, m, n_threads)
    first = replace(PAPER, max_iter=0)
    with workers(n_threads) as pool:
        Z = solve(problem, first, workers=pool).embedding
    f2, h2 = structure_matrices(student_affinity(Z), PAPER.loss)
    bsfgw = CouplingProblem(
        problem.affinity, problem.weights, f2, h2, targets=problem.targets, loss=problem.loss, alpha=PAPER.alpha
    )
    constant = PAPER.alpha * structure_constant(problem.affinity, problem.weights, PAPER.loss)

    def value(plan: sparse.csr_array) -> float:
        return constant + bsfgw.value(plan, affinity_times_plan(problem.affinity, plan))

    with workers(n_threads) as pool:
        found = solve_semirelaxed(bsfgw, problem.plan, workers=pool)
        ours = median_seconds(lambda: solve_semirelaxed(bsfgw, problem.plan, workers=pool))
    taken = [("ours", ours, value(found.plan), f"{found.n_iter} iterations")]
    with yardstick_threads(n_threads):
        taken += [
            (name, seconds, value(sparse.csr_array(plan)), f"{calls} calls")
            for name, seconds, plan, calls in _pot_couplings(problem, student_affinity(Z))
        ]
    start = value(problem.plan)
    return [
        Row("3 coupling step", f"{data.name}, m={m}", name, seconds, seconds / ours, "BSFGW (start "f"{start:.6g})",
            reached, note=note)
        for name, seconds, reached, note in taken
    ]  # fmt: skip


def _pot_couplings(problem: ReductionProblem, affinity: Array) -> list[tuple[str, float, Array, int]]:
    """POT called once, and called again with refreshed prototype targets until the plan stays."""
    plan, began, calls, taken = problem.plan.toarray(), time.perf_counter(), 0, []
    yardstick.couple(problem, plan, affinity, PAPER.alpha)
    began = time.perf_counter()
    while calls < 50:
        previous, plan = plan, yardstick.couple(problem, plan, affinity, PAPER.alpha)
        calls += 1
        if calls == 1:
            taken.append(("POT, one call", time.perf_counter() - began, plan, 1))
        if np.abs(plan - previous).max() < 1e-9:
            break
    return [*taken, ("POT, targets refreshed until the plan stays", time.perf_counter() - began, plan, calls)]


def warm_up(n_threads: int) -> None:
    """Compile every loop, on a small problem, before anything is measured."""
    problem = reduction_problem(mixture(200), 20, n_threads)
    with warnings.catch_warnings(), workers(n_threads) as pool:
        warnings.simplefilter("ignore")
        solve(problem, replace(PAPER, max_iter=2), workers=pool)

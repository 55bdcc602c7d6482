"""Random T-step problems, POT's answer to them, and BSFGW written term by term."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import ot
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from distreduce.affinity import student_affinity, symmetric_entropic_affinity
from distreduce.coupling.problem import CouplingProblem, affinity_times_plan, column_mass, hard_plan, structure_matrices

POT_LOSS = {"kl": "kl_loss", "square": "square_loss"}
# What hypothesis varies in `random_case`.
CASES = {
    "seed": st.integers(0, 10_000),
    "loss": st.sampled_from(["kl", "square"]),
    "alpha": st.sampled_from([0.0, 0.2, 1.0]),
    "supervised": st.booleans(),
    "weighted": st.booleans(),
    "structured": st.booleans(),
}


@dataclass(frozen=True)
class Case:
    """A problem, the C̄ it was made of, and a start."""

    problem: CouplingProblem
    embedding_affinity: np.ndarray
    start: sparse.csr_array
    loss: str
    balanced: bool


def random_case(
    seed: int, *, loss="kl", alpha=0.5, balanced=False, supervised=False, weighted=False, structured=True, n=None
) -> Case:
    """Points with their entropic affinity (or, if not `structured`, any numbers); targets, or a random linear cost."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 50)) if n is None else n
    m = n if balanced else int(rng.integers(2, n // 2))
    weights = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    X = rng.normal(size=(n, 3))
    if structured:
        C = symmetric_entropic_affinity(cdist(X, X, "sqeuclidean"), min(6.0, n / 3), weights).matrix
        C_bar = student_affinity(rng.normal(size=(m, 2)), weights if balanced else None)
    else:
        C, C_bar = (0.5 * (A + A.T) for A in (rng.uniform(0.01, 1, (n, n)), rng.uniform(0.01, 1, (m, m))))
    Y = X[:, :1] + 0.1 * rng.normal(size=(n, 1)) if supervised else None
    linear = None if supervised else rng.uniform(0, 1, (n, m))
    problem = CouplingProblem(C, weights, *structure_matrices(C_bar, loss), targets=Y, alpha=alpha, linear=linear)
    assignment = np.arange(n) if balanced else rng.integers(m, size=n)
    return Case(problem, C_bar, hard_plan(assignment, weights, m), loss, balanced)


def soft_plan(rng: np.random.Generator, weights: np.ndarray, m: int) -> sparse.csr_array:
    return sparse.csr_array(weights[:, None] * rng.dirichlet(np.ones(m), len(weights)))


def value(problem: CouplingProblem, T: sparse.csr_array) -> float:
    return problem.value(T, affinity_times_plan(problem.affinity, T) @ problem.h2)


def pot_solution(case: Case, start: sparse.csr_array, cost: np.ndarray) -> tuple[sparse.csr_array, float]:
    """POT's plan from `start` and its objective, both in our scale.

    POT's plan has mass one, T' = T/N. With GW quadratic and the cost linear in T, our α GW(T) + ⟨M, T⟩ is
    2αN² (½ GW(T') + ½ ⟨M/(αN), T'⟩): POT's objective with its alpha at one half.
    """
    problem = case.problem
    N = problem.weights.sum()
    first = start.toarray() / N
    solver, marginals, key = ot.gromov.semirelaxed_fused_gromov_wasserstein, (first.sum(axis=1),), "srfgw_dist"
    if case.balanced:
        solver, key = ot.gromov.fused_gromov_wasserstein, "fgw_dist"
        marginals = (first.sum(axis=1), first.sum(axis=0))
    plan, log = solver(
        cost / (problem.alpha * N),
        problem.affinity,
        case.embedding_affinity,
        *marginals,
        loss_fun=POT_LOSS[case.loss],
        symmetric=True,
        alpha=0.5,
        G0=first,
        log=True,
        max_iter=2000,
        tol_rel=1e-9,
        tol_abs=1e-14,
    )
    return sparse.csr_array(N * plan), 2 * problem.alpha * N**2 * float(log[key])


def pot_alternation(case: Case, rounds: int = 15) -> float:
    """The lowest BSFGW of POT solves that alternate with a refresh of the prototype targets."""
    T, lowest = case.start, value(case.problem, case.start)
    for _ in range(rounds):
        T, _ = pot_solution(case, T, case.problem.linear_cost(T))
        lowest, previous = min(lowest, value(case.problem, T)), lowest
        if previous - lowest <= 1e-10 * max(1.0, abs(lowest)):
            break
    return lowest


def masses(T: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(T.sum(axis=1)).ravel(), column_mass(T)

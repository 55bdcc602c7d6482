"""BSFGW: its value against sums written out and against POT, its gradient, and the exact step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import ot
import pytest
from coupling.coupling_problems import POT_LOSS, random_case, soft_plan, value
from scipy import sparse
from scipy.optimize import minimize_scalar

from distreduce.coupling.line_search import exact_step
from distreduce.coupling.problem import affinity_times_plan, hard_plan, structure_constant, structure_matrices
from distreduce.losses import get_loss

LOSSES = pytest.mark.parametrize("loss", ["kl", "square"])


def written_out(case, T):
    """J(T) term by term, with the squared loss ½|y − g|² and g the barycentres."""
    problem, T = case.problem, T.toarray()
    C, C_bar, total = problem.affinity, case.embedding_affinity, 0.0
    for i, j, k, l in np.ndindex(len(C), len(C), len(C_bar), len(C_bar)):
        a, b = C[i, j], C_bar[k, l]
        cost = a * np.log(a / b) - a + b if case.loss == "kl" else (a - b) ** 2
        total += problem.alpha * cost * T[i, k] * T[j, l]
    for i, k in np.ndindex(T.shape):
        if problem.targets is not None:
            barycentre = T[:, k] @ problem.targets / T[:, k].sum()
            total += (1 - problem.alpha) * 0.5 * ((problem.targets[i] - barycentre) ** 2).sum() * T[i, k]
        if problem.linear is not None:
            total += problem.linear[i, k] * T[i, k]
    return total


@pytest.mark.parametrize("supervised", [False, True])
@LOSSES
def test_value_is_the_sum_written_out(loss, supervised, rng):
    case = random_case(3, loss=loss, supervised=supervised, weighted=True, structured=False, n=8)
    T = soft_plan(rng, case.problem.weights, case.problem.shape[1])
    constant = case.problem.alpha * structure_constant(case.problem.affinity, case.problem.weights, loss)
    assert value(case.problem, T) + constant == pytest.approx(written_out(case, T), rel=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
@LOSSES
def test_gromov_wasserstein_is_pots(loss, weighted, rng):
    case = random_case(5, loss=loss, weighted=weighted)
    problem = replace(case.problem, linear=None, alpha=1.0)
    T = soft_plan(rng, problem.weights, problem.shape[1])
    N = problem.weights.sum()
    plan = T.toarray() / N
    arguments = (problem.affinity, case.embedding_affinity, plan.sum(axis=1), plan.sum(axis=0))
    constC, hC1, hC2 = ot.gromov.init_matrix(*arguments, POT_LOSS[loss])
    ours = value(problem, T) + structure_constant(problem.affinity, problem.weights, loss)
    assert ours == pytest.approx(N**2 * ot.gromov.gwloss(constC, hC1, hC2, plan), rel=1e-9)


@LOSSES
def test_gromov_wasserstein_gradient_is_pots(loss, rng):
    """POT's gradient is that of the balanced problem, where row and column constants are left to the marginals."""
    case = random_case(6, loss=loss)
    problem = replace(case.problem, linear=None, alpha=1.0)
    T = soft_plan(rng, problem.weights, problem.shape[1])
    N = problem.weights.sum()
    plan = T.toarray() / N
    arguments = (problem.affinity, case.embedding_affinity, plan.sum(axis=1), plan.sum(axis=0))
    expected = N * ot.gromov.gwggrad(*ot.gromov.init_matrix(*arguments, POT_LOSS[loss]), plan)
    gap = problem.gradient(T, affinity_times_plan(problem.affinity, T) @ problem.h2) - expected
    np.testing.assert_allclose(
        gap, np.broadcast_to(gap[:, :1], gap.shape), rtol=1e-8, atol=1e-8 * np.abs(expected).max()
    )


@pytest.mark.parametrize("target_loss", ["squared", "poisson", "geometric"])
@LOSSES
def test_gradient_with_refreshed_prototypes(loss, target_loss, rng):
    """Central differences of J, prototype targets recomputed at every point: the envelope theorem."""
    case = random_case(7, loss=loss, supervised=True, weighted=True, n=9)
    Y = rng.uniform(0.5, 2.0, (9, 2))
    Y[4] = np.nan
    linear = rng.uniform(0, 1, case.problem.shape)
    problem = replace(case.problem, targets=Y, loss=get_loss(target_loss), linear=linear)
    T = soft_plan(rng, problem.weights, problem.shape[1]).toarray()
    slopes, step = np.empty_like(T), 1e-5
    for i, k in np.ndindex(T.shape):
        E = np.zeros_like(T)
        E[i, k] = step
        slopes[i, k] = value(problem, sparse.csr_array(T + E)) - value(problem, sparse.csr_array(T - E))
    plan = sparse.csr_array(T)
    gradient = problem.gradient(plan, affinity_times_plan(problem.affinity, plan) @ problem.h2)
    np.testing.assert_allclose(gradient, slopes / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("structured", [False, True])
@LOSSES
def test_step_is_the_exact_minimiser(loss, structured, rng):
    for seed in range(10):
        problem = random_case(seed, loss=loss, structured=structured).problem
        T = soft_plan(rng, problem.weights, problem.shape[1])
        CT = affinity_times_plan(problem.affinity, T)
        gradient = problem.gradient(T, CT @ problem.h2)
        V = hard_plan(gradient.argmin(axis=1), problem.weights, problem.shape[1])
        difference = (affinity_times_plan(problem.affinity, V) - CT) @ problem.h2
        slope = float((V - T).multiply(gradient).sum())
        step = exact_step(problem.curvature(T, V, difference), slope)

        def along(t, problem=problem, T=T, V=V):
            return value(problem, sparse.csr_array((1 - t) * T + t * V))

        inside = minimize_scalar(along, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
        assert along(step) <= min(inside.fun, along(0.0), along(1.0)) + 1e-9 * abs(inside.fun)


def test_step_of_a_supervised_problem_descends(rng):
    for seed in range(10):
        problem = random_case(seed, supervised=True, alpha=0.1).problem
        T = soft_plan(rng, problem.weights, problem.shape[1])
        CT = affinity_times_plan(problem.affinity, T)
        gradient = problem.gradient(T, CT @ problem.h2)
        V = hard_plan(gradient.argmin(axis=1), problem.weights, problem.shape[1])
        difference = (affinity_times_plan(problem.affinity, V) - CT) @ problem.h2
        slope = float((V - T).multiply(gradient).sum())
        step = exact_step(problem.curvature(T, V, difference), slope)
        assert value(problem, sparse.csr_array((1 - step) * T + step * V)) < problem.value(T, CT @ problem.h2)


@LOSSES
def test_structure_matrices_split_the_loss(loss, rng):
    """L(a, b) = f1(a) + f2(b) − a h2(b)."""
    a, b = rng.uniform(0.1, 1, (2, 5, 5))
    f2, h2 = structure_matrices(b, loss)
    expected = a * np.log(a / b) - a + b if loss == "kl" else (a - b) ** 2
    f1 = a * np.log(a) - a if loss == "kl" else a**2
    np.testing.assert_allclose(f1 + f2 - a * h2, expected, atol=1e-14)

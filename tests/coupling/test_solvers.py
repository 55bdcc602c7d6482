"""Both solvers: marginals, descent, vertices of the linear oracles, and unsupervised rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from coupling.coupling_problems import CASES, masses, random_case, soft_plan, value
from hypothesis import given, settings
from scipy.optimize import linprog

from distreduce._utils import threads
from distreduce._utils.threads import Workers
from distreduce.coupling.descent import (
    SWEEP_ROWS,
    conditional_gradient,
    move_rows,
    solve_balanced,
    solve_semirelaxed,
    transport_vertex,
)
from distreduce.coupling.problem import affinity_times_plan, hard_plan, move_to


@settings(max_examples=20)
@given(**CASES)
def test_semirelaxed_plans_keep_the_row_masses_and_descend(**options):
    case = random_case(**options)
    found = solve_semirelaxed(case.problem, case.start)
    rows, _ = masses(found.plan)
    np.testing.assert_allclose(rows, case.problem.weights, rtol=1e-12)
    assert (found.plan.data >= 0).all()
    assert found.value <= value(case.problem, case.start) + 1e-12


@settings(max_examples=15)
@given(**CASES)
def test_balanced_plans_keep_both_marginals_and_descend(**options):
    case = random_case(**options, balanced=True)
    found = solve_balanced(case.problem, case.start)
    for got, wanted in zip(masses(found.plan), masses(case.start), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)
    assert found.value <= value(case.problem, case.start) + 1e-12


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("supervised", [False, True])
def test_result_is_consistent(balanced, supervised, loops):
    """J, C·T·h2 and the linear cost are kept up to date by steps; they must be those of the plan that comes back."""
    case = random_case(11, balanced=balanced, supervised=supervised, weighted=True, structured=False)
    found = (solve_balanced if balanced else solve_semirelaxed)(case.problem, case.start)
    CT = case.problem.affinity @ found.plan.toarray()
    np.testing.assert_allclose(found.product, CT @ case.problem.h2, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.linear_cost, case.problem.linear_cost(found.plan), rtol=1e-11, atol=1e-12)
    assert found.value == pytest.approx(case.problem.value(found.plan, CT @ case.problem.h2), rel=1e-11)


def test_few_rows_have_the_plan_of_the_compiled_loops(monkeypatch):
    cases = [random_case(seed, supervised=True, weighted=True, n=60) for seed in range(3)]
    few = [solve_semirelaxed(case.problem, case.start, max_iter=3) for case in cases]
    monkeypatch.setattr(threads, "UNCOMPILED_ROWS", 0)
    for case, found in zip(cases, few, strict=True):
        compiled = solve_semirelaxed(case.problem, case.start, max_iter=3)
        np.testing.assert_allclose(found.plan.toarray(), compiled.plan.toarray(), atol=1e-12)


@pytest.mark.parametrize("loss", ["kl", "square"])
def test_every_step_of_the_conditional_gradient_descends(loss):
    """J at every iteration limit, seen from outside."""
    case = random_case(4, loss=loss, structured=False)
    weights, m = case.problem.weights, case.problem.shape[1]

    def cheapest(gradient):
        return hard_plan(gradient.argmin(axis=1), weights, m)

    values = [
        conditional_gradient(case.problem, case.start, cheapest, max_iter=k, tol=1e-9).value for k in range(1, 15)
    ]
    assert np.diff(values).max() <= 1e-12 * abs(values[0]) and values[-1] < values[0]


@pytest.mark.parametrize("balanced", [False, True])
def test_no_iteration_limit_ends_above_the_start(balanced):
    case = random_case(4, balanced=balanced, supervised=True, structured=False)
    solver = solve_balanced if balanced else solve_semirelaxed
    start = value(case.problem, case.start)
    assert all(solver(case.problem, case.start, max_iter=k).value < start for k in range(1, 15))


def test_no_vertex_is_better_to_first_order_at_the_end():
    for seed in range(5):
        case = random_case(seed, supervised=True)
        T = solve_semirelaxed(case.problem, case.start).plan
        gradient = case.problem.gradient(T, affinity_times_plan(case.problem.affinity, T) @ case.problem.h2)
        gap = T.multiply(gradient).sum() - case.problem.weights @ gradient.min(axis=1)
        assert gap <= 1e-8 * abs(value(case.problem, T))


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_no_row_gains_by_moving_at_the_end(soft, rng):
    """By brute force, J of every plan with one row elsewhere; several blocks of rows."""
    case = random_case(3, supervised=True, weighted=True, n=2 * SWEEP_ROWS + 9)
    h, m = case.problem.weights, 5
    problem = replace(case.problem, f2=case.problem.f2[:m, :m], h2=case.problem.h2[:m, :m])
    start = soft_plan(rng, h, m) if soft else hard_plan(case.start.indices % m, h, m)
    found = conditional_gradient(problem, start, lambda gradient: start, max_iter=1, tol=1e-9)
    T = move_rows(problem, found).plan
    held = problem.with_targets_held(T)
    lowest = min(value(held, move_to(T, np.array([i]), np.full(len(h), k), h)) for i, k in np.ndindex(len(h), m))
    assert value(problem, T) < value(problem, start) and lowest >= value(held, T) * (1 - 1e-11)


def test_without_structure_every_row_goes_to_its_cheapest_prototype(rng):
    case = random_case(8, alpha=0.0)
    found = solve_semirelaxed(case.problem, soft_plan(rng, case.problem.weights, case.problem.shape[1]))
    np.testing.assert_array_equal(found.plan.toarray().argmax(axis=1), case.problem.linear.argmin(axis=1))
    assert found.value == pytest.approx(case.problem.weights @ case.problem.linear.min(axis=1))


@pytest.mark.parametrize("shift", [0.0, -100.0], ids=["positive", "negative"])
@pytest.mark.parametrize("weighted", [False, True])
def test_transport_vertex_solves_the_linear_programme(weighted, shift, rng):
    """Gradients of GW are often negative throughout: a constant must change nothing."""
    n = 9
    h = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    g = rng.permutation(h)
    cost = rng.uniform(0, 1, (n, n)) + shift
    constraints = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    expected = linprog(cost.ravel(), A_eq=constraints, b_eq=np.r_[h, g]).fun
    assert transport_vertex(cost, h, g).multiply(cost).sum() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("balanced", [False, True])
def test_rows_without_target_are_placed_by_structure_alone(balanced):
    """With every row unknown but two, the supervision cannot move the others: alpha only rescales their problem."""
    case = random_case(9, balanced=balanced, supervised=True)
    Y = np.full_like(case.problem.targets, np.nan)
    Y[:2] = 1.0
    solver = solve_balanced if balanced else solve_semirelaxed
    plans = [solver(replace(case.problem, targets=Y, alpha=alpha), case.start).plan for alpha in (0.2, 1.0)]
    np.testing.assert_allclose(plans[0].toarray(), plans[1].toarray(), atol=1e-12)


def test_weights_are_repetitions():
    """A sample of weight two is that sample twice, wherever the plan starts."""
    case = random_case(10, supervised=True, n=20)
    problem, m = case.problem, case.problem.shape[1]
    twice = np.r_[0, np.arange(20)]
    assignment = case.start.indices
    heavy = replace(problem, weights=np.r_[2.0, np.ones(19)])
    repeated = replace(
        problem,
        affinity=problem.affinity[np.ix_(twice, twice)],
        weights=np.ones(21),
        targets=problem.targets[twice],
    )
    a = solve_semirelaxed(heavy, hard_plan(assignment, heavy.weights, m))
    b = solve_semirelaxed(repeated, hard_plan(assignment[twice], repeated.weights, m))
    assert a.value == pytest.approx(b.value, rel=1e-10)


def test_threads_do_not_change_the_plan():
    case = random_case(12, supervised=True, n=300)
    pool = Workers(2)
    one, two = solve_semirelaxed(case.problem, case.start), solve_semirelaxed(case.problem, case.start, workers=pool)
    pool.close()
    assert np.array_equal(one.product, two.product) and one.value == two.value


def test_iteration_limit_is_reported():
    case = random_case(4, structured=False)
    assert not solve_semirelaxed(case.problem, case.start, max_iter=1).converged
    assert solve_semirelaxed(case.problem, case.start, max_iter=20_000).converged

"""The solvers against POT's conditional gradient, from the same start: never above it."""

from __future__ import annotations

import pytest
from coupling.coupling_problems import pot_alternation, pot_solution, random_case, value

from distreduce.coupling.descent import solve_balanced, solve_semirelaxed
from distreduce.coupling.problem import structure_constant

ALPHAS = pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0])
LOSSES = pytest.mark.parametrize("loss", ["kl", "square"])
BALANCED = pytest.mark.parametrize("balanced", [False, True], ids=["semirelaxed", "balanced"])
SEEDS = range(8)


def ours(case, **options):
    return (solve_balanced if case.balanced else solve_semirelaxed)(case.problem, case.start, **options)


@LOSSES
@BALANCED
def test_pots_own_value_of_its_plan_is_ours(balanced, loss):
    """Scale and signs: POT's logged objective of its plan is our J plus the constant of GW."""
    case = random_case(1, loss=loss, balanced=balanced, weighted=True)
    plan, expected = pot_solution(case, case.start, case.problem.linear)
    constant = case.problem.alpha * structure_constant(case.problem.affinity, case.problem.weights, loss)
    assert value(case.problem, plan) + constant == pytest.approx(expected, rel=1e-9)


@ALPHAS
@LOSSES
@BALANCED
def test_never_above_pot_on_the_same_problem(balanced, loss, alpha):
    for seed in SEEDS:
        case = random_case(seed, loss=loss, alpha=alpha, balanced=balanced, weighted=seed % 2 == 1, n=24)
        theirs = value(case.problem, pot_solution(case, case.start, case.problem.linear)[0])
        assert ours(case).value <= theirs + 1e-6 * max(1.0, abs(theirs)), seed


@ALPHAS
@LOSSES
@BALANCED
def test_never_above_pot_on_affinities_of_no_structure(balanced, loss, alpha):
    """Any numbers for C and C̄: minima lie inside the polytope, where conditional gradients take hundreds of steps."""
    for seed in range(2):
        options = {"balanced": balanced, "weighted": seed % 2 == 1, "structured": False, "n": 10}
        case = random_case(seed, loss=loss, alpha=alpha, **options)
        theirs = value(case.problem, pot_solution(case, case.start, case.problem.linear)[0])
        assert ours(case, max_iter=3000, tol=1e-10).value <= theirs + 1e-6 * max(1.0, abs(theirs)), seed


@ALPHAS
@LOSSES
@BALANCED
def test_never_above_pot_alternating_with_the_prototype_targets(balanced, loss, alpha):
    for seed in SEEDS:
        case = random_case(
            seed, loss=loss, alpha=alpha, balanced=balanced, supervised=True, weighted=seed % 2 == 1, n=24
        )
        theirs = pot_alternation(case)
        assert ours(case).value <= theirs + 1e-6 * max(1.0, abs(theirs)), seed

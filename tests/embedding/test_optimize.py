"""The minimizers of the Z-step: descent, the textbook Adam, and weights that act like repetitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from embedding.embedding_problems import direction, random_problem, symmetric
from hypothesis import given, settings
from hypothesis import strategies as st

from distreduce.affinity import student_affinity
from distreduce.embedding.optimize import make_objective, minimize_adam, minimize_lbfgs
from distreduce.embedding.plain import Terms
from distreduce.exceptions import NumericalError
from distreduce.kernels import RBF


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    m=st.integers(2, 40),
    scale=st.floats(1e-3, 30.0),
    loss=st.sampled_from(["kl", "square"]),
)
def test_no_minimizer_ends_above_its_start(seed, m, scale, loss):
    rng = np.random.default_rng(seed)
    problem, Z = random_problem(rng, m, loss=loss, with_map=True), scale * rng.normal(size=(m, 2))
    objective = make_objective(problem, "auto")
    start = objective(Z)[0].total(problem)
    found = minimize_lbfgs(objective, problem, Z, max_iter=5)
    stepped = minimize_adam(objective, problem, Z, max_iter=5, learning_rate=10.0)
    assert found.value <= start and stepped.value <= start


def test_result_is_what_the_objective_says_there(rng):
    problem = random_problem(rng, 30, with_map=True)
    objective = make_objective(problem, "auto")
    found = minimize_lbfgs(objective, problem, rng.normal(size=(30, 2)))
    assert found.value == found.terms.total(problem) == objective(found.prototypes)[0].total(problem)


def test_lbfgs_ends_where_the_gradient_vanishes(rng):
    mass, Z = np.full(20, 5.0), rng.normal(size=(20, 2))
    transported = 100 * student_affinity(2 * rng.normal(size=(20, 2)))
    problem = random_problem(rng, 20, mass=mass, transported=transported)
    objective = make_objective(problem, "auto")
    found = minimize_lbfgs(objective, problem, Z, max_iter=2000, tol=1e-15)
    assert found.converged
    assert np.abs(objective(found.prototypes)[1]).max() < 1e-4 * np.abs(objective(Z)[1]).max()


def test_lbfgs_that_ran_out_of_evaluations_has_not_converged(rng):
    """From far away one line search eats the evaluations of several iterations."""
    problem = random_problem(rng, 20, with_map=True)
    found = minimize_lbfgs(make_objective(problem, "auto"), problem, 1e4 * rng.normal(size=(20, 2)), max_iter=3)
    assert found.n_evaluations >= 6
    assert not found.converged


def test_lbfgs_says_when_it_ran_out_of_iterations(rng):
    problem = random_problem(rng, 40)
    found = minimize_lbfgs(make_objective(problem, "auto"), problem, rng.normal(size=(40, 2)), max_iter=3)
    assert not found.converged and found.n_evaluations <= 7


def test_adam_is_torchs_adam(rng):
    problem, start = random_problem(rng, 15, with_map=True), rng.normal(size=(15, 2))
    objective = make_objective(problem, "auto")
    seen = []

    def watched(Z):
        seen.append(Z.copy())
        return objective(Z)

    minimize_adam(watched, problem, start, max_iter=40, tol=0.0, learning_rate=0.05)
    z = torch.tensor(start, requires_grad=True)
    adam = torch.optim.Adam([z], lr=0.05)
    for Z in seen:
        np.testing.assert_allclose(Z, z.detach().numpy(), rtol=1e-9, atol=1e-12)
        z.grad = torch.tensor(objective(z.detach().numpy())[1])
        adam.step()


def test_adam_stops_when_the_objective_stands_still(rng):
    problem, Z = random_problem(rng, 10), rng.normal(size=(10, 2))
    found = minimize_adam(make_objective(problem, "auto"), problem, Z, max_iter=500, tol=0.1, learning_rate=1e-3)
    assert found.converged and found.n_evaluations < 500


def weighted(C, K_Y, w):
    rng = np.random.default_rng(0)
    return random_problem(
        rng,
        len(w),
        mass=w,
        reference=w,
        transported=np.outer(w, w) * C,
        target=direction(K_Y, w, "cka"),
        target_weights=w,
    )


def test_a_prototype_of_weight_two_moves_like_two_of_weight_one(rng):
    C, K_Y, Z = symmetric(rng, 8), RBF()(rng.normal(size=(8, 1))), rng.normal(size=(8, 2))
    twice = np.r_[0, np.arange(8)]
    once = weighted(C, K_Y, np.array([2.0] + 7 * [1.0]))
    both = weighted(C[np.ix_(twice, twice)], K_Y[np.ix_(twice, twice)], np.ones(9))
    a = minimize_lbfgs(make_objective(once, "auto"), once, Z, max_iter=15)
    b = minimize_lbfgs(make_objective(both, "auto"), both, Z[twice], max_iter=15)
    np.testing.assert_allclose(a.prototypes[twice], b.prototypes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("minimize", [minimize_lbfgs, minimize_adam])
def test_an_objective_that_is_no_number_is_an_error(minimize, rng):
    problem = random_problem(rng, 4)

    def broken(Z):
        return Terms(np.nan, 0.0, 0.0), np.full_like(Z, np.nan)

    with pytest.raises(NumericalError, match="start"):
        minimize(broken, problem, np.zeros((4, 2)), max_iter=3)

"""What is true of every single fit: finite numbers, marginals, an objective that falls, a map of single rows."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from trust.problems import Problem, fitted, holds_for, problems, quietly


@holds_for(problems(), examples=10)
def test_results_are_finite(problem: Problem) -> None:
    model = fitted(problem)
    history = model.history_.drop(columns="cka").to_numpy()  # of DistR it is NaN: there is nothing to align with
    said = [model.embedding_, model.prototypes_, model.coupling_.data, history, model.transform(1.5 * problem.X)]
    assert all(np.isfinite(part).all() for part in said)


@holds_for(problems(), examples=8)
def test_rows_of_the_plan_sum_to_one(problem: Problem) -> None:
    model = fitted(problem)
    assert model.coupling_.data.min() >= 0
    assert_allclose(np.asarray(model.coupling_.sum(axis=1)).ravel(), 1.0, rtol=0, atol=1e-10)


@holds_for(problems(), examples=8)
def test_columns_of_the_plan_are_the_weights_of_the_prototypes(problem: Problem) -> None:
    """With as many prototypes as samples they are the samples' own (the plan is balanced, decision 6)."""
    weights = 1.0 + np.random.default_rng(problem.seed).integers(0, 3, problem.n)
    model = fitted(problem, problem.X, problem.y, weights)
    carried = np.asarray(model.coupling_.T @ weights).ravel() / weights.sum()
    assert_allclose(carried, model.prototype_weights_, rtol=0, atol=1e-10)
    if model.n_prototypes is None:
        assert_allclose(model.prototype_weights_, weights / weights.sum(), rtol=1e-12)


@holds_for(problems(), examples=8)
def test_the_objective_never_rises(problem: Problem) -> None:
    """Over the iterations of one fit, and from fits of fewer iterations to fits of more."""
    last = [fitted(problem, max_iter=k).history_["objective"].to_numpy() for k in (0, 1, 4)]
    found = np.r_[last[0][-1], last[1][-1], last[2][-1]]
    assert (np.diff(found) <= 0).all() and (np.diff(last[2]) <= 0).all()


@holds_for(problems(), examples=8)
def test_a_row_has_the_same_place_in_any_batch(problem: Problem) -> None:
    model, rng = fitted(problem), np.random.default_rng(problem.seed)
    rows = rng.integers(0, problem.n, rng.integers(1, 2 * problem.n))
    assert_array_equal(model.transform(problem.X[rows]), model.embedding_[rows])


@holds_for(problems(most=100), examples=6)
def test_a_clone_and_a_refit_are_the_same_model(problem: Problem) -> None:
    """To the last bit, and an earlier fit to other samples leaves nothing behind."""
    first, again = fitted(problem), fitted(problem, np.hstack([problem.X, -problem.X]), problem.y)
    quietly(again.fit, problem.X, problem.y)
    copied = quietly(clone(first).fit, problem.X, problem.y)
    assert vars(first).keys() == vars(again).keys() == vars(copied).keys()
    for name in ("embedding_", "prototypes_", "prototype_weights_", "labels_", "prototype_medoids_", "objective_"):
        assert_array_equal(getattr(again, name), getattr(first, name))
        assert_array_equal(getattr(copied, name), getattr(first, name))

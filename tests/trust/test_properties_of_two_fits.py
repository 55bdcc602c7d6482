"""What leaves a fit as it is, bit for bit: the order of the samples, repetition for weight, units of powers of two."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal
from trust.problems import Problem, fitted, holds_for, problems

from distreduce.mapping.folds import MANY_MEASUREMENTS


@holds_for(problems(), examples=8)
def test_the_order_of_the_samples_does_not_matter(problem: Problem) -> None:
    order = np.random.default_rng(problem.seed).permutation(problem.n)
    X, y = problem.X, problem.y
    shuffled = fitted(problem, X[order], None if y is None else y[order])
    assert_array_equal(shuffled.embedding_, fitted(problem).embedding_[order])


@holds_for(problems(most=120), examples=8)
def test_weight_two_is_the_sample_twice(problem: Problem) -> None:
    """Repeated measurements are the exception: folds take them apart if their weights are equal."""
    X, y, rng = problem.X, problem.y, np.random.default_rng(problem.seed)
    counts = rng.integers(1, 4, problem.n)
    _, first, site = np.unique(X, axis=0, return_index=True, return_inverse=True)
    if y is not None and np.bincount(site.ravel(), counts).max() >= MANY_MEASUREMENTS:
        y = y[first[site.ravel()]]
    rows = rng.permutation(np.repeat(np.arange(problem.n), counts))
    repeated = fitted(problem, X[rows], None if y is None else y[rows])
    weighted = fitted(problem, X, y, counts.astype(float))
    assert_array_equal(weighted.embedding_[rows], repeated.embedding_)


@holds_for(problems(), examples=6)
def test_weight_zero_is_no_sample(problem: Problem) -> None:
    """The first two rows stay: a fit needs two samples and two targets that differ."""
    X, y, kept = problem.X, problem.y, np.random.default_rng(problem.seed).random(problem.n) < 0.7
    kept[: max(2, problem.model["n_prototypes"] or 0)] = True
    without = fitted(problem, X[kept], None if y is None else y[kept])
    assert_array_equal(fitted(problem, X, y, kept.astype(float)).embedding_[kept], without.embedding_)


@holds_for(problems(), examples=6)
def test_a_unit_that_is_a_power_of_two_does_not_matter(problem: Problem) -> None:
    """Of dense affinities: the sparse one draws its samples by a hash of their numbers (decision 16)."""
    problem = problem.with_model(affinity="dense")
    unit = 2.0 ** np.random.default_rng(problem.seed).integers(-60, 60)
    assert_array_equal(fitted(problem, unit * problem.X, problem.y).embedding_, fitted(problem).embedding_)

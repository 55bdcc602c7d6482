"""Squared distances near zero, Adam against torch's, and the best point."""

from __future__ import annotations

import numpy as np
import pytest
from affinity import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from distreduce._utils.numerics import Adam, BestSoFar
from distreduce._utils.threads import Workers
from distreduce.affinity import squared_distances

DIMENSIONS = [1, 5, 100]


@pytest.mark.parametrize("d", DIMENSIONS)
def test_agrees_with_definition(rng: np.random.Generator, d: int) -> None:
    X = rng.normal(size=(60, d))
    np.testing.assert_allclose(squared_distances(X), reference.squared_distances(X), rtol=1e-11, atol=0)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_accurate_far_from_the_origin(rng: np.random.Generator, d: int) -> None:
    X = rng.normal(size=(40, d)) + 1e6
    np.testing.assert_allclose(squared_distances(X), reference.squared_distances(X), rtol=1e-8)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_accurate_next_to_an_outlier(rng: np.random.Generator, d: int) -> None:
    X = rng.normal(size=(40, d))
    X[0] += 1e7
    np.testing.assert_allclose(squared_distances(X), reference.squared_distances(X), rtol=1e-8)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates_are_at_distance_zero(rng: np.random.Generator, d: int, dtype: type) -> None:
    X = np.repeat(rng.normal(size=(30, d)), 3, axis=0) + 100.0
    same = np.arange(90)[:, None] // 3 == np.arange(90) // 3
    assert np.array_equal(squared_distances(X, dtype) == 0.0, same)


@given(seed=st.integers(0, 1000), n=st.integers(1, 300), d=st.sampled_from([*DIMENSIONS, 65]))
def test_symmetric_bit_for_bit(seed: int, n: int, d: int) -> None:
    D = squared_distances(np.random.default_rng(seed).normal(size=(n, d)), np.float32)
    assert np.array_equal(D, D.T) and D.min() >= 0.0


def test_sparse_agrees_with_dense(rng: np.random.Generator) -> None:
    X = sparse.random(50, 80, 0.1, format="csr", random_state=0)
    np.testing.assert_allclose(squared_distances(X), squared_distances(X.toarray()), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_threads_do_not_change_a_bit(rng: np.random.Generator, d: int) -> None:
    X = rng.normal(size=(700, d))
    pool = Workers(2)
    assert np.array_equal(squared_distances(X), squared_distances(X, workers=pool))
    pool.close()


def test_float32_is_the_rounded_float64(rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 7))
    assert np.array_equal(squared_distances(X, np.float32), squared_distances(X).astype(np.float32))


torch = pytest.importorskip("torch")


@pytest.mark.parametrize("learning_rate", [1e-3, 0.1])
def test_steps_are_torchs(rng, learning_rate):
    gradients = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-6, 6, size=4)
    theirs = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([theirs], lr=learning_rate)
    ours, adam = np.zeros(4), Adam(learning_rate)
    for gradient in gradients:
        theirs.grad = torch.tensor(gradient)
        optimizer.step()
        ours = adam.step(ours, gradient)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10)


def test_the_point_given_is_not_changed():
    at = np.ones(3)
    Adam(0.1).step(at, np.ones(3))
    np.testing.assert_array_equal(at, np.ones(3))


def bowl(x):
    return float(x @ x), 2 * x, "kept"


def test_the_best_point_is_remembered():
    best = BestSoFar(bowl)
    for at in (3.0, 1.0, 2.0):
        assert best(np.array([at])) == (at**2, np.array([2 * at]))
    assert (best.point, best.value, best.kept, best.n_evaluations) == (np.array([1.0]), 1.0, ["kept"], 3)


def nan_gradient(x):
    return 0.0, np.array([np.nan])


def division(x):
    raise ZeroDivisionError


@pytest.mark.parametrize("failure", [nan_gradient, division, lambda x: (np.nan, x), lambda x: (1e25, x)])
def test_a_failure_is_never_the_best_and_lies_uphill(failure):
    best = BestSoFar(lambda x: bowl(x) if x[0] > 0 else failure(x), failed=1e25)
    assert best.uphill(np.array([-1.0])) == (0.0, np.array([0.0]))
    best(np.array([2.0]))
    assert best(np.array([-1.0])) == (np.inf, None)
    assert best.uphill(np.array([-1.0])) == (9.0, np.array([0.0]))
    assert (best.value, best.n_failures) == (4.0, 3)

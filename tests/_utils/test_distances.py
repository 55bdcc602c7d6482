"""Squared distances: exact at zero, symmetric, accurate, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
from affinity import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from distreduce._utils.threads import Workers
from distreduce.affinity import squared_distances
from distreduce.exceptions import InvalidInputError

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


def test_other_types_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="float32 or float64"):
        squared_distances(np.zeros((2, 2)), np.int64)

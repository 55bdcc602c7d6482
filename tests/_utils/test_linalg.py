"""LAPACK without the interpreter lock has SciPy's bits; Cholesky factors and inverses against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_factor, lapack, solve_triangular

from distreduce._utils import linalg
from distreduce._utils.linalg import inverse_from_factor, jittered_cholesky, solve_with_ridges

N = 130


@pytest.fixture
def matrix(rng):
    A = rng.normal(size=(N, N))
    return np.asfortranarray(A @ A.T + np.eye(N))


def test_routines_have_the_bits_of_scipy(matrix, rng):
    B = rng.normal(size=(N, 7))
    factor = lapack.dpotrf(matrix, lower=1)[0]
    found = matrix.copy(order="F")
    assert linalg.factorise_in_place(found)
    np.testing.assert_array_equal(np.tril(found), factor)
    for order in "CF":
        triangle = np.array(factor, order=order)
        np.testing.assert_array_equal(linalg.solve_lower(triangle, B), solve_triangular(triangle, B, lower=True))
    product = np.tril(lapack.dlauum(factor, lower=1)[0])
    np.testing.assert_array_equal(np.tril(linalg.multiply_factor(factor.copy(order="F"))), product)


def test_a_matrix_that_is_not_positive_definite_is_recognised():
    assert not linalg.factorise_in_place(np.asfortranarray(-np.eye(3)))


@pytest.mark.parametrize("wrong", [np.eye(4, dtype=np.float32), np.eye(8)[::2, ::2]])
def test_what_lapack_cannot_read_is_refused(wrong):
    with pytest.raises(ValueError, match="contiguous"):
        linalg.factorise_in_place(wrong)


def test_inverse_is_numpys_whatever_stands_above_the_diagonal(rng):
    A = rng.normal(size=(30, 30))
    A = A @ A.T + np.eye(30)
    factor = cho_factor(A, lower=True)[0]  # SciPy leaves the upper triangle of A in place
    np.testing.assert_allclose(inverse_from_factor(factor), np.linalg.inv(A), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 40])
@pytest.mark.parametrize("shift", [0.0, 2.0], ids=["positive", "indefinite"])
def test_solutions_for_many_ridges_are_those_of_each(rng, n, shift):
    """Negative eigenvalues count as zero, as in a kernel of distances that are not Euclidean."""
    X, left, right = rng.normal(size=(n, n)), rng.normal(size=(3, n)), rng.normal(size=(n, 2))
    A = X @ X.T / n - shift * np.eye(n)
    values, vectors = np.linalg.eigh(A)
    for ridge, found in zip((1e-2, 1.0), solve_with_ridges(A, left, right, (1e-2, 1.0)), strict=True):
        inverse = vectors / (np.maximum(values, 0.0) + ridge) @ vectors.T
        np.testing.assert_allclose(found, left @ inverse @ right, rtol=1e-8, atol=1e-10)


def test_a_positive_definite_matrix_needs_no_jitter(rng):
    A = rng.normal(size=(8, 8))
    A = A @ A.T + np.eye(8)
    factor, jitter = jittered_cholesky(A.copy(order="F"), 1.0, (1e-3,))
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(A), rtol=1e-12)


@pytest.mark.parametrize("unit", [0.5, np.array([0.5, 1.0, 2.0])], ids=["one", "each"])
def test_a_factorisation_that_fails_is_tried_with_jitter(monkeypatch, unit):
    real, calls = linalg.factorise_in_place, []

    def fails_twice(matrix):
        calls.append(real(matrix))  # which overwrites the matrix
        return len(calls) > 2

    monkeypatch.setattr(linalg, "factorise_in_place", fails_twice)
    factor, jitter = jittered_cholesky(np.full((3, 3), 0.5) + np.eye(3), unit, (1e-4, 1e-2, 1.0))
    assert jitter == 1e-2
    lower = np.tril(factor)
    np.testing.assert_allclose(lower @ lower.T, np.full((3, 3), 0.5) + np.eye(3) + np.diag(0.01 * unit * np.ones(3)))


def test_a_matrix_that_is_not_positive_definite_is_rejected():
    with pytest.raises(LinAlgError, match="not positive definite"):
        jittered_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 1.0, (1e-6, 1e-3))


@pytest.mark.parametrize("place", [(0, 0), (1, 1), (0, 1)])
def test_a_matrix_with_nan_is_rejected(place):
    A = np.eye(2)
    A[place] = A[place[::-1]] = np.nan
    with pytest.raises(FloatingPointError, match="NaN"):
        jittered_cholesky(A, 1.0, (1e-6,))

"""Cholesky factors with jitter, and the inverse from a factor, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_factor

from distreduce._utils import numerics
from distreduce._utils.numerics import inverse_from_factor, jittered_cholesky


def test_inverse_is_numpys_whatever_stands_above_the_diagonal(rng):
    A = rng.normal(size=(30, 30))
    A = A @ A.T + np.eye(30)
    factor = cho_factor(A, lower=True)[0]  # SciPy leaves the upper triangle of A in place
    np.testing.assert_allclose(inverse_from_factor(factor), np.linalg.inv(A), rtol=1e-9, atol=1e-12)


def test_a_positive_definite_matrix_needs_no_jitter(rng):
    A = rng.normal(size=(8, 8))
    A = A @ A.T + np.eye(8)
    factor, jitter = jittered_cholesky(A.copy(order="F"), 1.0, (1e-3,))
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(A), rtol=1e-12)


@pytest.mark.parametrize("unit", [0.5, np.array([0.5, 1.0, 2.0])], ids=["one", "each"])
def test_a_factorisation_that_fails_is_tried_with_jitter(monkeypatch, unit):
    real, calls = numerics.cho_factor, []

    def fails_twice(matrix, **options):
        calls.append(real(matrix, **options))  # which overwrites the matrix
        if len(calls) < 3:
            raise LinAlgError("not positive definite")
        return calls[-1]

    monkeypatch.setattr(numerics, "cho_factor", fails_twice)
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

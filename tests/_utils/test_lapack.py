"""LAPACK without the interpreter lock: the bits of SciPy's wrappers, and nothing written where it does not belong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack, solve_triangular

from distreduce._utils import lapack as ours

N = 130


@pytest.fixture
def matrix(rng):
    A = rng.normal(size=(N, N))
    return np.asfortranarray(A @ A.T + np.eye(N))


def test_routines_have_the_bits_of_scipy(matrix, rng):
    B = rng.normal(size=(N, 7))
    factor = lapack.dpotrf(matrix, lower=1)[0]
    found = matrix.copy(order="F")
    assert ours.factorise_in_place(found)
    np.testing.assert_array_equal(np.tril(found), factor)
    for order in "CF":
        triangle = np.array(factor, order=order)
        np.testing.assert_array_equal(ours.solve_lower(triangle, B), solve_triangular(triangle, B, lower=True))
    product = np.tril(lapack.dlauum(factor, lower=1)[0])
    np.testing.assert_array_equal(np.tril(ours.multiply_factor(factor.copy(order="F"))), product)


def test_a_matrix_that_is_not_positive_definite_is_recognised():
    assert not ours.factorise_in_place(np.asfortranarray(-np.eye(3)))


@pytest.mark.parametrize("wrong", [np.eye(4, dtype=np.float32), np.eye(8)[::2, ::2]])
def test_what_lapack_cannot_read_is_refused(wrong):
    with pytest.raises(ValueError, match="contiguous"):
        ours.factorise_in_place(wrong)

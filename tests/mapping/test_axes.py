"""Coordinates in which a kernel matrix is the identity: by a Cholesky factor where safe, else by eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce.exceptions import NumericalError
from distreduce.kernels import RBF
from distreduce.mapping import _axes
from distreduce.mapping._axes import orthonormal_axes


def a_kernel(rng, n=80, length_scale=1.0):
    return RBF(length_scale)(rng.normal(size=(n, 3)))


@pytest.mark.parametrize("length_scale", [0.3, 0.5, 1.0, 3.0, 30.0])
def test_the_kernel_is_the_identity_in_them(length_scale, rng):
    """To the rounding that the least direction that is kept, 1e-12 of the largest, leaves."""
    K = a_kernel(rng, length_scale=length_scale)
    A = orthonormal_axes(K)
    np.testing.assert_allclose(A.T @ K @ A, np.eye(A.shape[1]), atol=1e-3)


def test_a_factor_spans_what_the_eigenvectors_do(rng):
    """AAᵀ is K⁻¹ for both."""
    K = a_kernel(rng, length_scale=0.4)
    A, vectors = _axes._inverse_cholesky(K), _axes._scaled_eigenvectors(K)
    np.testing.assert_allclose(A @ A.T, vectors @ vectors.T, rtol=1e-9, atol=1e-9)


def test_a_kernel_far_from_singular_is_factorised(rng, monkeypatch):
    monkeypatch.delattr(_axes, "_scaled_eigenvectors")
    assert orthonormal_axes(a_kernel(rng, length_scale=0.4)).shape == (80, 80)


@pytest.mark.parametrize("length_scale", [0.4, 3.0])
def test_directions_of_repeated_landmarks_are_left_out(length_scale, rng):
    X = rng.normal(size=(40, 3))
    once, twice = (orthonormal_axes(RBF(length_scale)(rows)) for rows in (X, np.vstack([X, X[:7]])))
    assert twice.shape[1] == once.shape[1]


def test_a_kernel_that_is_no_number_is_refused(rng):
    K = a_kernel(rng)
    K[3, 5] = np.nan
    with pytest.raises(NumericalError, match="not finite"):
        orthonormal_axes(K)

"""Matérn's kernel against scikit-learn's, and its derivative against differences."""

from __future__ import annotations

import numpy as np
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import Matern

from distreduce.kernels import DistanceKernel, Matern32


def test_values_are_scikit_learns(rng):
    A, B = rng.normal(size=(12, 3)), rng.normal(size=(7, 3))
    np.testing.assert_allclose(Matern32()(A, B), Matern(1.0, nu=1.5)(A, B), rtol=1e-12)


def test_derivative_is_that_of_the_values():
    at = np.array([0.3, 1.0, 4.0])
    slopes = [approx_fprime([u], lambda x: Matern32().of_sq_distance(x)[0], 1e-7)[0] for u in at]
    np.testing.assert_allclose(Matern32().derivative(at), slopes, rtol=1e-5)


def test_it_is_a_kernel_of_distances():
    assert isinstance(Matern32(), DistanceKernel)


def test_infinitely_far_is_no_correlation():
    assert Matern32().of_sq_distance(np.array([np.inf, 1e300])).tolist() == [0.0, 0.0]

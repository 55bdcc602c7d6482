"""Kernels against scikit-learn's, and the promises the rest of the package builds on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process import kernels as gp_kernels
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from distreduce._utils.numerics import sq_distances
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import (
    KERNELS,
    RBF,
    Delta,
    DistanceKernel,
    Linear,
    RationalQuadratic,
    get_kernel,
)

DISTANCE_KERNELS = [RationalQuadratic(), RationalQuadratic(0.7, 2.5), RBF(), RBF(0.3)]


@pytest.fixture(params=[3, 200], ids=["narrow", "wide"])
def A(request, rng):
    return rng.standard_normal((30, request.param))


def test_rbf_against_sklearn(A):
    B = A[:7] + 0.1
    np.testing.assert_allclose(RBF(1.7)(A, B), rbf_kernel(A, B, gamma=0.5 / 1.7**2), rtol=1e-11, atol=1e-15)


def test_ard_rbf_against_sklearn(A, rng):
    scales = rng.uniform(0.5, 3.0, A.shape[1])
    np.testing.assert_allclose(RBF(scales)(A), gp_kernels.RBF(scales)(A), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(RBF(np.full(A.shape[1], 2.0))(A), RBF(2.0)(A), rtol=1e-11, atol=1e-15)


def test_rational_quadratic_against_sklearn(A):
    expected = gp_kernels.RationalQuadratic(length_scale=2.5, alpha=0.7)(A)
    np.testing.assert_allclose(RationalQuadratic(alpha=0.7, length_scale=2.5)(A), expected, rtol=1e-11)


def test_linear_against_sklearn(A):
    np.testing.assert_allclose(Linear()(A, A[:4]), linear_kernel(A, A[:4]), rtol=1e-14)


@pytest.mark.parametrize("kernel", DISTANCE_KERNELS, ids=repr)
def test_function_of_distance_and_its_derivative(kernel, A):
    d2 = sq_distances(A[:, :3], A[:5, :3])
    assert isinstance(kernel, DistanceKernel)
    np.testing.assert_array_equal(kernel.of_sq_distance(d2), kernel(A[:, :3], A[:5, :3]))
    step = 1e-6
    slope = (kernel.of_sq_distance(d2 + step) - kernel.of_sq_distance(d2 - step)) / (2 * step)
    np.testing.assert_allclose(kernel.derivative(d2), slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kernel", [*DISTANCE_KERNELS, Linear()], ids=repr)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_row_does_not_depend_on_its_batch(kernel, offset, A):
    """Near-duplicates far from the origin: the case in which expanded squares lose their digits."""
    B = np.vstack([A, A + 1e-3]) + offset
    whole = kernel(B)
    alone = np.vstack([kernel(B[i : i + 1], B) for i in range(len(B))])
    np.testing.assert_allclose(alone, whole, rtol=1e-12, atol=1e-12)


def test_distances_are_exact_under_cancellation(A):
    """Two tight clusters far apart, where centring alone does not help."""
    B = np.vstack([A - 1e5, A + 1e5])
    exact = ((B[:, None] - B[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(sq_distances(B), exact, rtol=1e-11)


@pytest.mark.parametrize("kernel", [RBF(3.0), RBF(np.full(200, 3.0)), Linear(), RationalQuadratic()], ids=str)
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows(kernel, form, rng):
    dense = rng.standard_normal((20, 200)) * (rng.random((20, 200)) < 0.1)
    A = form(dense)
    np.testing.assert_allclose(kernel(A), kernel(dense), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel(A, dense[:5]), kernel(dense, dense[:5]), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel(A[3:4], A), kernel(A)[3:4], rtol=1e-12, atol=1e-13)


def test_delta_on_labels_and_on_rows(rng):
    labels = rng.integers(0, 3, 12)
    equal = (labels[:, None] == labels[None]).astype(float)
    np.testing.assert_array_equal(Delta()(labels), equal)
    np.testing.assert_array_equal(Delta()(labels, labels[:4]), equal[:, :4])
    np.testing.assert_array_equal(Delta()(np.eye(3)[labels]), equal)
    soft = rng.dirichlet(np.ones(3), 5)
    np.testing.assert_allclose(Delta()(soft), soft @ soft.T, rtol=1e-14)


@pytest.mark.parametrize("kernel", [*DISTANCE_KERNELS, Linear(), Delta()], ids=repr)
def test_positive_semi_definite(kernel, A):
    assert np.linalg.eigvalsh(kernel(A)).min() > -1e-10


def test_kernels_are_values():
    assert RBF([1.0, 2.0]) == RBF(np.array([1.0, 2.0]))
    assert len({RBF(1.0), RBF(1), RBF(2.0)}) == 2


def test_get_kernel():
    assert get_kernel("rq") == RationalQuadratic(alpha=1.0, length_scale=1.0)
    assert {get_kernel(name) for name in KERNELS} == {RationalQuadratic(), RBF(), Delta(), Linear()}
    assert get_kernel(kernel := RBF(2.0)) is kernel
    with pytest.raises(InvalidInputError, match="kernel='matern' is not known"):
        get_kernel("matern")


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0], [[1.0]]])
def test_length_scales_must_be_positive(bad):
    with pytest.raises(InvalidInputError, match="length_scale must be positive"):
        RBF(bad)


def test_ard_needs_matching_features_and_is_no_function_of_one_distance():
    with pytest.raises(InvalidInputError, match="2 entries for 3 features"):
        RBF([1.0, 2.0])(np.ones((2, 3)))
    with pytest.raises(InvalidInputError, match="not a function of a single distance"):
        RBF([1.0, 2.0]).of_sq_distance(np.ones(2))


@pytest.mark.parametrize("kernel", [RBF(1e-10), RationalQuadratic(length_scale=1e-10)], ids=str)
def test_points_infinitely_far_in_units_of_the_length_scale_have_no_similarity(kernel):
    assert kernel(np.array([[0.0], [1e150]])).tolist() == [[1.0, 0.0], [0.0, 1.0]]

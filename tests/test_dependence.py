"""HSIC and CKA against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import KernelCenterer

from distreduce.dependence import center, cka, hsic
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, Linear, RationalQuadratic


@pytest.fixture
def kernels(rng):
    X = rng.standard_normal((14, 3))
    return RationalQuadratic()(X), RBF()(X[:, :1] + 0.5 * rng.standard_normal((14, 1)))


@pytest.fixture
def weights(rng):
    return rng.uniform(0.1, 3.0, 14)


def brute_force(K, L, w):
    """Σ_ij p_i p_j K̃_ij L̃_ij, with every mean of the centring written out as a sum."""
    p, n = w / w.sum(), len(w)

    def centred(M, i, j):
        row = sum(p[k] * M[i, k] for k in range(n))
        column = sum(p[k] * M[k, j] for k in range(n))
        return M[i, j] - row - column + sum(p[k] * p[m] * M[k, m] for k in range(n) for m in range(n))

    return sum(p[i] * p[j] * centred(K, i, j) * centred(L, i, j) for i in range(n) for j in range(n))


def test_center_against_sklearn_and_explicit_projection(kernels, weights):
    K, n = kernels[0], 14
    np.testing.assert_allclose(center(K), KernelCenterer().fit_transform(K), atol=1e-14)
    H = np.eye(n) - np.outer(np.ones(n), weights) / weights.sum()
    np.testing.assert_allclose(center(K, weights), H @ K @ H.T, atol=1e-14)
    np.testing.assert_allclose(center(K, weights) @ weights, 0.0, atol=1e-13)


def test_hsic_against_the_trace_formula(kernels):
    K, L = kernels
    H = np.eye(14) - 1 / 14
    assert hsic(K, L) == pytest.approx(np.trace(K @ H @ L @ H) / 14**2, rel=1e-12)


def test_weighted_hsic_and_cka_against_brute_force(kernels, weights):
    K, L = kernels
    assert hsic(K, L, weights) == pytest.approx(brute_force(K, L, weights), rel=1e-12)
    norm = np.sqrt(brute_force(K, K, weights) * brute_force(L, L, weights))
    assert cka(K, L, weights) == pytest.approx(brute_force(K, L, weights) / norm, rel=1e-12)


def test_linear_cka_is_the_squared_correlation(rng):
    x, y = rng.standard_normal((2, 40))
    expected = np.corrcoef(x, y)[0, 1] ** 2
    assert cka(Linear()(x[:, None]), Linear()(y[:, None])) == pytest.approx(expected, rel=1e-10)


def test_uncentred_is_the_formula_as_printed(kernels):
    K, L = kernels
    expected = (K * L).sum() / (np.linalg.norm(K) * np.linalg.norm(L))
    assert cka(K, L, centered=False) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("centered", [True, False])
def test_weight_two_is_a_point_given_twice(kernels, centered):
    K, L = kernels
    times = np.array([1, 2, 3] + [1] * 11)
    rows = np.repeat(np.arange(14), times)
    K_rep, L_rep = K[np.ix_(rows, rows)], L[np.ix_(rows, rows)]
    assert cka(K, L, times, centered) == pytest.approx(cka(K_rep, L_rep, None, centered), rel=1e-12)
    assert hsic(K, L, times) == pytest.approx(hsic(K_rep, L_rep), rel=1e-12)


@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-10, 10), weight=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
def test_invariances_and_range(scale, shift, weight, seed):
    rng = np.random.default_rng(seed)
    K, L = (RBF()(rng.standard_normal((9, 2))) for _ in range(2))
    w, order = rng.uniform(0.1, 1.0, 9), rng.permutation(9)
    value = cka(K, L, w)
    assert 0.0 <= value <= 1.0 + 1e-12
    assert cka(L, K, w) == pytest.approx(value)
    assert cka(scale * K + shift, L, weight * w) == pytest.approx(value, rel=1e-6)
    assert cka(K[np.ix_(order, order)], L[np.ix_(order, order)], w[order]) == pytest.approx(value)
    assert cka(K, K, w) == pytest.approx(1.0)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1])
def test_constant_kernels_depend_on_nothing(kernels, constant):
    K = np.full((14, 14), constant)
    assert cka(K, kernels[1]) == 0.0
    assert cka(kernels[1], K) == 0.0
    assert cka(np.zeros((14, 14)), kernels[1], centered=False) == 0.0


@pytest.mark.parametrize("bad", [np.ones(3), np.zeros(14), -np.ones(14), np.full(14, np.nan)])
def test_weights_are_checked(kernels, bad):
    with pytest.raises(InvalidInputError, match="weights must be 14"):
        cka(*kernels, bad)


def test_shapes_are_checked(kernels):
    with pytest.raises(InvalidInputError, match="same points"):
        hsic(kernels[0], kernels[1][:5, :5])

"""Kernel supervised PCA against its eigenproblem, plain supervised PCA and kernel PCA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigh
from sklearn.datasets import load_iris
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier

from distreduce.baselines import KernelSupervisedPCA
from distreduce.exceptions import InvalidInputError

IRIS_X, IRIS_Y = load_iris(return_X_y=True)


def identity_kernel(A: Any, B: Any = None) -> np.ndarray:
    """L = I: no supervision."""
    return np.eye(len(A))


def draw(seed: int, n: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 2))


def centring(n: int) -> np.ndarray:
    return np.eye(n) - 1 / n


def up_to_sign(Z: np.ndarray) -> np.ndarray:
    return Z * np.sign(Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])])


@given(st.integers(0, 1000))
def test_directions_solve_the_generalised_eigenproblem(seed: int) -> None:
    X, Y = draw(seed)
    model = KernelSupervisedPCA(2, task="regression", length_scale=0.7).fit(X, Y)
    scaled = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    K, L, H = rbf_kernel(X, gamma=0.5 / 0.49), rbf_kernel(scaled, gamma=0.5), centring(len(X))
    expected = eigh(K @ H @ L @ H @ K, K, eigvals_only=True)[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-6)


@given(st.integers(0, 1000))
def test_directions_are_orthonormal_in_feature_space(seed: int) -> None:
    X, Y = draw(seed)
    model = KernelSupervisedPCA(3, task="regression", length_scale=0.7).fit(X, Y)
    V = model.map_.coefficients
    np.testing.assert_allclose(V.T @ rbf_kernel(X, gamma=0.5 / 0.49) @ V, np.eye(3), atol=1e-8)


@given(st.integers(0, 1000))
def test_linear_kernels_give_plain_supervised_pca(seed: int) -> None:
    X, Y = draw(seed)
    scaled = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    H = centring(len(X))
    U = eigh(X.T @ H @ scaled @ scaled.T @ H @ X)[1][:, ::-1][:, :2]
    found = KernelSupervisedPCA(2, task="regression", input_kernel="linear", target_kernel="linear").fit_transform(X, Y)
    np.testing.assert_allclose(up_to_sign(found), up_to_sign(X @ U), atol=1e-8)


@given(st.integers(0, 1000))
def test_without_supervision_it_is_kernel_pca(seed: int) -> None:
    X, y = draw(seed)
    model = KernelSupervisedPCA(3, task="regression", target_kernel=identity_kernel, length_scale=1.0)
    found = model.fit_transform(X, y)
    expected = KernelPCA(3, kernel="rbf", gamma=0.5, eigen_solver="dense").fit_transform(X)
    np.testing.assert_allclose(up_to_sign(found - found.mean(axis=0)), up_to_sign(expected), atol=1e-7)


def test_components_beyond_the_classes_are_the_limit_of_a_vanishing_identity() -> None:
    X, y = draw(0)[0], np.arange(20) % 2
    found = KernelSupervisedPCA(3, length_scale=0.5).fit(X, y)
    K, H, gamma = rbf_kernel(X, gamma=2.0), centring(20), 1e-7
    L = np.equal.outer(y, y) + gamma * np.eye(20)
    V = eigh(K @ H @ L @ H @ K, K)[1][:, ::-1][:, :3]
    np.testing.assert_allclose(up_to_sign(found.transform(X)), up_to_sign(K @ V), atol=1e-4)


def test_directions_that_the_data_lack_are_zero() -> None:
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    found = KernelSupervisedPCA(3, input_kernel="linear").fit_transform(X, y)
    assert (found.std(axis=0) > 1e-9).tolist() == [True, False, False]


def test_map_of_new_samples_is_linear_in_the_kernel() -> None:
    X, y = draw(1)
    model = KernelSupervisedPCA(2, task="regression", length_scale=0.7).fit(X[:15], y[:15])
    expected = rbf_kernel(X[15:], X[:15], gamma=0.5 / 0.49) @ model.map_.coefficients
    np.testing.assert_allclose(model.transform(X[15:]), expected, atol=1e-10)


def test_classes_part_in_the_plane() -> None:
    model = KernelSupervisedPCA().fit(IRIS_X[::2], IRIS_Y[::2])
    knn = KNeighborsClassifier(5).fit(model.transform(IRIS_X[::2]), IRIS_Y[::2])
    assert knn.score(model.transform(IRIS_X[1::2]), IRIS_Y[1::2]) > 0.93


def test_unit_of_the_inputs_does_not_matter() -> None:
    small, large = (KernelSupervisedPCA().fit_transform(unit * IRIS_X, IRIS_Y) for unit in (1.0, 1e6))
    np.testing.assert_allclose(small, large, rtol=1e-6, atol=1e-9)


def test_more_components_than_samples_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="n_components=30 .* 20"):
        KernelSupervisedPCA(30).fit(*draw(0))

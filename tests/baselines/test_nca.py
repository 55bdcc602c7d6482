"""NCA: scikit-learn's on classes, the kernel-regression form on numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor, NeighborhoodComponentsAnalysis

from distreduce.baselines import NCA
from distreduce.baselines.nca import leave_one_out_error
from distreduce.exceptions import InvalidInputError


def problem(seed: int, n: int = 12, d: int = 4, p: int = 2, c: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(p, d)), rng.normal(size=(n, d)), rng.normal(size=(n, c))


def brute_force(A: np.ndarray, X: np.ndarray, Y: np.ndarray) -> float:
    total = 0.0
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        weights = np.array([np.exp(-np.sum((A @ X[i] - A @ X[j]) ** 2)) for j in others])
        total += np.sum((Y[i] - weights @ Y[others] / weights.sum()) ** 2)
    return total / len(X)


@given(st.integers(0, 1000))
def test_error_is_that_of_its_definition(seed: int) -> None:
    A, X, Y = problem(seed)
    assert leave_one_out_error(A, X, Y)[0] == pytest.approx(brute_force(A, X, Y), rel=1e-9)


@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0, 3.0]))
def test_gradient_is_that_of_autograd(seed: int, scale: float) -> None:
    A, X, Y = problem(seed)
    a = torch.tensor(scale * A, requires_grad=True)
    Z, y = torch.tensor(X) @ a.T, torch.tensor(Y)
    D = ((Z[:, None] - Z[None]) ** 2).sum(-1) + torch.diag(torch.full((len(X),), torch.inf, dtype=torch.float64))
    ((y - torch.softmax(-D, dim=1) @ y) ** 2).sum(1).mean().backward()
    np.testing.assert_allclose(leave_one_out_error(scale * A, X, Y)[1], a.grad.numpy().ravel(), rtol=1e-7, atol=1e-10)


def test_classes_are_left_to_scikit_learn() -> None:
    X, y = load_iris(return_X_y=True)
    expected = NeighborhoodComponentsAnalysis(2, random_state=0).fit(X, y).components_
    np.testing.assert_allclose(NCA(random_state=0).fit(X, load_iris().target_names[y]).components_, expected)


def test_numbers_find_the_direction_they_depend_on(rng: np.random.Generator) -> None:
    X, direction = rng.normal(size=(200, 6)), np.array([1.0, -2.0, 0.0, 0.0, 1.0, 0.0]) / np.sqrt(6)
    found = NCA(1, random_state=0).fit(X, np.sin(2 * X @ direction)).components_[0]
    assert abs(found @ direction) / np.linalg.norm(found) > 0.99


def test_new_samples_have_their_neighbours_targets(rng: np.random.Generator) -> None:
    X = rng.normal(size=(400, 10))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2])
    scores = []
    for model in (NCA(2).fit(X[:300], Y[:300]), PCA(2).fit(X[:300])):
        knn = KNeighborsRegressor(5).fit(model.transform(X[:300]), Y[:300])
        scores.append(knn.score(model.transform(X[300:]), Y[300:]))
    assert scores[0] > 0.8 > scores[1]


def test_targets_explained_by_one_direction_leave_the_second_to_principal_axes(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3))
    assert np.linalg.matrix_rank(NCA(2).fit(X, X[:, 0] * 2.5).components_) == 2


def test_samples_without_a_target_are_left_out(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    partly = np.where(np.arange(60) < 40, y, np.nan)
    np.testing.assert_array_equal(NCA().fit(X, partly).components_, NCA().fit(X[:40], y[:40]).components_)


def test_more_components_than_features_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="n_components=5 .* features, 4"):
        NCA(5).fit(*load_iris(return_X_y=True))

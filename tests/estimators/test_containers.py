"""The result does not depend on the container, order or number type in which the same X and y come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from distreduce import SDR, DistR

DENSE = {
    "list": lambda X: X.tolist(),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "frame": lambda X: pd.DataFrame(X, columns=list("abcdef")[: X.shape[1]]),
    "object": lambda X: X.astype(object),
}
SPARSE = ("csr_matrix", "csc_matrix", "csr_array", "coo_array", "lil_matrix")


def sparse_data() -> tuple[np.ndarray, np.ndarray]:
    """70 × 8 with about two thirds of zeros, two classes."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70, 8)) * (rng.random((70, 8)) < 0.35)
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0.05).astype(int)


@pytest.mark.parametrize("n_prototypes", [None, 9])
def test_dense_containers_give_the_same_bits(n_prototypes: Any, classification: Any) -> None:
    X, y = classification
    model = SDR(n_prototypes=n_prototypes, random_state=0)
    expected = model.fit_transform(X, y)
    for name, container in DENSE.items():
        assert_array_equal(model.fit_transform(container(X), y), expected, err_msg=name)


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_sparse_containers_give_the_dense_result(estimator: type) -> None:
    X, y = sparse_data()
    model = estimator(random_state=0)
    expected = model.fit_transform(X, y)
    for name in SPARSE:
        assert_allclose(model.fit_transform(getattr(sparse, name)(X), y), expected, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("n_prototypes", [None, 8])
def test_sparse_transform_of_a_dense_fit(n_prototypes: Any) -> None:
    X, y = sparse_data()
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, y)
    assert_allclose(model.transform(sparse.csr_array(X)), model.embedding_, atol=1e-10)


def test_dense_transform_of_a_sparse_fit() -> None:
    X, y = sparse_data()
    model = SDR(random_state=0).fit(sparse.csr_matrix(X), y)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-10)


def test_sparse_matrix_with_explicit_zeros_and_unsorted_columns_is_the_same_data() -> None:
    X, y = sparse_data()
    plain = sparse.csr_matrix(X)
    messy = sparse.csr_matrix(X + (X == 0))
    messy.data[np.isclose(messy.toarray()[messy.nonzero()], 1.0) & (X[messy.nonzero()] == 0)] = 0.0
    for start, stop in zip(messy.indptr[:-1], messy.indptr[1:], strict=True):
        messy.indices[start:stop] = messy.indices[start:stop][::-1].copy()
        messy.data[start:stop] = messy.data[start:stop][::-1].copy()
    messy.has_sorted_indices = False
    model = SDR(random_state=0)
    expected = model.fit_transform(plain, y)
    assert_allclose(model.fit_transform(messy, y), expected, atol=1e-10)


def test_float32_counts_as_the_numbers_it_holds(classification: Any) -> None:
    X, y = classification
    single = X.astype(np.float32)
    model = SDR(random_state=0)
    assert_array_equal(model.fit_transform(single, y), model.fit_transform(single.astype(np.float64), y))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, bool])
def test_whole_numbers_count_as_floats(dtype: type, rng: np.random.Generator) -> None:
    X = rng.integers(0, 2 if dtype is bool else 90, size=(40, 7)).astype(dtype)
    y = rng.normal(size=40)
    model = SDR(random_state=0)
    assert_array_equal(model.fit_transform(X, y), model.fit_transform(X.astype(float), y))


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.csc_array])
def test_fit_and_transform_leave_the_inputs_alone(make: Any, rng: np.random.Generator) -> None:
    X, y, w = make(rng.normal(size=(40, 4))), rng.normal(size=40), rng.uniform(1, 2, 40)
    before = [X.copy(), y.copy(), w.copy()]
    SDR(n_prototypes=6, random_state=0).fit(X, y, w).transform(X)
    assert all(abs(now - then).max() == 0 for now, then in zip((X, y, w), before, strict=True))


def test_distances_are_left_alone(rng: np.random.Generator) -> None:
    points = rng.normal(size=(30, 3))
    D = np.linalg.norm(points[:, None] - points, axis=2)
    before = D.copy()
    DistR(metric="precomputed", random_state=0).fit(D).transform(D)
    assert_array_equal(D, before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_inputs_are_enough(order: Any, rng: np.random.Generator) -> None:
    X, y, w = np.array(rng.normal(size=(40, 4)), order=order), rng.normal(size=40), np.ones(40)
    for array in (X, y, w):
        array.setflags(write=False)
    assert np.isfinite(SDR(random_state=0).fit(X, y, w).transform(X)).all()


def test_containers_of_y_give_the_same_bits(regression: Any) -> None:
    X, y = regression
    model = SDR(random_state=0, task="regression")
    expected = model.fit_transform(X, y)
    for same in (y.tolist(), pd.Series(y), y[:, None], pd.DataFrame({"t": y}), y.astype(object)):
        assert_array_equal(model.fit_transform(X, same), expected, err_msg=str(type(same)))


def test_frame_of_mixed_number_types(classification: Any) -> None:
    X, y = classification
    frame = pd.DataFrame({"a": X[:, 0], "b": np.arange(len(X)), "c": X[:, 2].astype(np.float32)})
    model = SDR(random_state=0)
    assert_array_equal(model.fit_transform(frame, y), model.fit_transform(frame.to_numpy(dtype=float), y))

"""Predictions as features of the map: when they join, what the map then is, and what new samples gain."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from distreduce import SDR
from distreduce.estimators import _predictions


def blobs() -> tuple[np.ndarray, np.ndarray]:
    """Six overlapping classes: five dimensions of targets."""
    return make_blobs(240, centers=6, n_features=4, cluster_std=2.5, random_state=0)


def test_the_map_is_the_kernel_of_features_and_predictions() -> None:
    X, y = blobs()
    model = SDR(n_prototypes=20, random_state=0).fit(X, y)
    found, new = model.map_, X[:9] + 0.1
    assert found.predictions is not None
    inner, lengths = found.predictions.predictor, np.asarray(found.kernel.length_scale)

    def rbf(a, b, scale):
        return np.exp(-0.5 * ((a[:, None] / scale - b[None] / scale) ** 2).sum(axis=2))

    predicted = rbf(new / inner.unit, inner.inputs, inner.kernel.length_scale) @ inner.coefficients
    rows, inputs = np.c_[new / found.unit, predicted], np.c_[found.inputs, found.predictions.values]
    assert_allclose(model.transform(new), rbf(rows, inputs, lengths) @ found.coefficients, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"n_prototypes": None},
        {"n_components": 5},
        {"length_scale": "median"},
        {"map_reg": 0.1},
        {"eta": 100.0},
        {"input_kernel": "rq"},
    ],
    ids=str,
)
def test_they_join_only_if_the_picture_is_too_small_and_all_is_left_to_the_data(options) -> None:
    X, y = blobs()
    assert SDR(**({"n_prototypes": 20, "random_state": 0} | options)).fit(X, y).map_.predictions is None


@pytest.mark.parametrize("kind", ["sparse", "precomputed", "numbers"])
def test_other_data_have_none(kind) -> None:
    X, y = blobs()
    rows, metric = X, "euclidean"
    if kind == "sparse":
        rows = sparse.csr_array(X)
    elif kind == "precomputed":
        rows, metric = cdist(X, X), "precomputed"
    else:
        y = X[:, 0] + 0.1 * y
    assert SDR(n_prototypes=20, metric=metric, random_state=0).fit(rows, y).map_.predictions is None


def test_new_samples_gain(monkeypatch) -> None:
    X, y = load_digits(return_X_y=True)
    X, new, y, truth = train_test_split(X / 16, y, train_size=500, random_state=1)

    def accuracy() -> float:
        model = SDR(n_prototypes=50, random_state=0).fit(X, y)
        return KNeighborsClassifier(10).fit(model.embedding_, y).score(model.transform(new), truth)

    with_predictions = accuracy()
    monkeypatch.setattr(_predictions, "_can_predict", lambda *arguments: False)
    assert with_predictions > accuracy() + 0.01


def test_unknown_targets_are_predicted_too() -> None:
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    partly = np.where(np.arange(len(y)) % 5 == 0, np.nan, y)
    model = SDR(n_prototypes=20, task="classification", random_state=0).fit(X / 16, partly)
    assert model.map_.predictions is not None and np.isfinite(model.map_.predictions.values).all()

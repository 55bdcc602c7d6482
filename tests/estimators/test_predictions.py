"""Predictions as features of the map: when they join, what the map then is, and what new samples gain."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from distreduce import SDR
from distreduce.estimators import _expected


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Ten classes: nine dimensions of targets."""
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    return X / 16, y


def test_the_map_is_the_kernel_of_features_and_predictions() -> None:
    X, y = digits()
    model = SDR(n_prototypes=20, random_state=0).fit(X, y)
    found, new = model.map_, X[:9] + 0.1
    assert found.predictions is not None
    inner, lengths = found.predictions.predictor, np.asarray(found.kernel.length_scale)

    def rbf(a, b, scale):
        return np.exp(-0.5 * ((a[:, None] / scale - b[None] / scale) ** 2).sum(axis=2))

    scores = rbf(new / inner.unit, inner.inputs, inner.kernel.length_scale) @ inner.coefficients
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    rows, inputs = np.c_[new / found.unit, shares], np.c_[found.inputs, found.predictions.shares]
    assert_allclose(model.transform(new), rbf(rows, inputs, lengths) @ found.coefficients, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 9},
        {"length_scale": "median"},
        {"map_reg": 0.1},
        {"eta": 100.0},
        {"input_kernel": "rq"},
    ],
    ids=str,
)
def test_they_join_only_if_the_picture_is_too_small_and_all_is_left_to_the_data(options) -> None:
    X, y = digits()
    assert SDR(**({"n_prototypes": 20, "random_state": 0} | options)).fit(X, y).map_.predictions is None


@pytest.mark.parametrize("kind", ["sparse", "precomputed", "numbers", "three numbers"])
def test_other_data_have_none(kind) -> None:
    X, y = digits()
    rows, metric = X, "euclidean"
    if kind == "sparse":
        rows = sparse.csr_array(X)
    elif kind == "precomputed":
        rows, metric = cdist(X, X), "precomputed"
    else:
        y = X[:, 20] + 0.1 * y if kind == "numbers" else X[:, 20:23]
    assert SDR(n_prototypes=20, metric=metric, random_state=0).fit(rows, y).map_.predictions is None


@pytest.mark.parametrize("n_prototypes", [50, None])
def test_new_samples_gain(monkeypatch, n_prototypes) -> None:
    X, y = load_digits(return_X_y=True)
    X, new, y, truth = train_test_split(X / 16, y, train_size=300, test_size=600, random_state=1)

    def accuracy() -> float:
        model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, y)
        return KNeighborsClassifier(10).fit(model.embedding_, y).score(model.transform(new), truth)

    with_predictions = accuracy()
    monkeypatch.setattr(_expected, "_can_predict", lambda *arguments: False)
    assert with_predictions > accuracy() + 0.01


def test_unknown_targets_are_predicted_too() -> None:
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    partly = np.where(np.arange(len(y)) % 5 == 0, np.nan, y)
    model = SDR(n_prototypes=20, task="classification", random_state=0).fit(X / 16, partly)
    assert model.map_.predictions is not None and np.isfinite(model.map_.predictions.shares).all()


def test_shares_are_as_sharp_as_left_out_classes_allow() -> None:
    """The oracle is a grid; scores that say nothing get no sharpness."""
    rng = np.random.default_rng(0)
    Y, weights = np.eye(4)[rng.integers(4, size=300)], rng.integers(1, 4, size=300).astype(float)
    scores = 0.05 * Y + 0.03 * rng.normal(size=Y.shape)  # shrunk, but mostly in the right order

    def loss(sharpness: float) -> float:
        shares = np.exp(sharpness * scores)
        return -float(weights @ np.log((Y * shares).sum(axis=1) / shares.sum(axis=1)))

    grid = np.geomspace(0.1, 300, 2000)
    assert_allclose(_expected._sharpen(scores, Y, weights), grid[np.argmin([loss(s) for s in grid])], rtol=0.01)
    assert _expected._sharpen(-scores, Y, weights) < 0.06


def clusters_of_classes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """100 Gaussians in 50 dimensions, ten of each class: near samples are rare."""
    rng = np.random.default_rng(0)
    centres, number = rng.normal(scale=0.7, size=(100, 50)), rng.integers(100, size=n)
    return centres[number] + rng.normal(size=(n, 50)), number % 10


def test_samples_far_from_each_other_are_placed_by_their_predictions(monkeypatch) -> None:
    X, y = clusters_of_classes(2500)

    def accuracy() -> float:
        model = SDR(n_prototypes=50, random_state=0).fit(X[:800], y[:800])
        return KNeighborsClassifier(10).fit(model.embedding_, y[:800]).score(model.transform(X[800:]), y[800:])

    found = accuracy()
    monkeypatch.setattr(_expected, "WIDER", (1.0,))
    assert found > accuracy() + 0.05


def test_on_shards_all_samples_teach_the_predictions(monkeypatch) -> None:
    """The oracle solves the normal equations of all samples on the landmarks."""
    monkeypatch.setattr(_expected, "LANDMARKS", (300,))
    X, y = clusters_of_classes(2500)
    model = SDR(n_prototypes=50, affinity="sparse", random_state=0).fit(X, y)
    predictor = model.map_.predictions.predictor
    scale = predictor.unit * np.asarray(predictor.kernel.length_scale)
    landmarks, Y = predictor.inputs * predictor.unit, np.eye(10)[y]

    def rbf(A):
        return np.exp(-0.5 * cdist(A / scale, landmarks / scale, "sqeuclidean"))

    K, best = rbf(X), []
    for ridge in 10.0 ** np.arange(-4.0, 2.1, 0.5):
        L = np.linalg.solve(K.T @ K + ridge * rbf(landmarks), K.T @ (Y - Y.mean(axis=0)))
        best.append(np.corrcoef((K @ L).ravel(), predictor(X).ravel())[0, 1])
    assert len(landmarks) == 300 and max(best) > 1 - 1e-9


def test_on_shards_kernels_may_be_as_narrow_as_clusters(monkeypatch) -> None:
    X, y = clusters_of_classes(6000)

    def accuracy() -> float:
        model = SDR(n_prototypes=50, random_state=0).fit(X[:5100], y[:5100])
        return (
            KNeighborsClassifier(10).fit(model.embedding_left_out_, y[:5100]).score(model.transform(X[5100:]), y[5100:])
        )

    found = accuracy()
    monkeypatch.setattr(_expected, "NARROWER", (1.0,))
    assert found > accuracy() + 0.01


@pytest.mark.filterwarnings("ignore::distreduce.exceptions.DataWarning")  # -1 is unknown
def test_on_shards_few_known_classes_are_enough(monkeypatch) -> None:
    monkeypatch.setattr(_expected, "TRIAL_SAMPLES", 1)  # whose class is unknown
    X, y = clusters_of_classes(2500)
    y[np.arange(2500) % 12 > 0] = -1
    model = SDR(n_prototypes=50, affinity="sparse", random_state=0).fit(X, y)
    assert model.map_.predictions is not None and np.isfinite(model.embedding_).all()

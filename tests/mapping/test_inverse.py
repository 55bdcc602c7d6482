"""Slopes of the map against finite differences, and samples found again at their places."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from distreduce import SDR, DistR
from distreduce.exceptions import InvalidInputError


def data(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 0.0, 0.0]
    return X, X[:, 0] + X[:, 1] / 10


@pytest.mark.parametrize(
    "options",
    [
        {}, {"length_scale": "median"}, {"length_scale": "ard"}, {"input_kernel": "rq"}, {"input_kernel": "linear"},
        {"task": "classification"},
    ],
    ids=str,
)  # fmt: skip
def test_slopes_are_those_of_finite_differences(options) -> None:
    X, y = data()
    if "task" in options:  # so many classes that predictions join the features
        X, y = make_blobs(240, centers=6, n_features=4, cluster_std=2.5, random_state=0)
    model = SDR(n_prototypes=10, random_state=0, **options).fit(X, y)
    new = X[:5] + 0.01
    found = model.explain(new)
    assert found.shape == (5, 2, 4)
    for feature, step in enumerate(1e-4 * X.std(axis=0)):
        shift = np.eye(4)[feature] * step
        expected = (model.transform(new + shift) - model.transform(new - shift)) / (2 * step)
        assert_allclose(found[:, :, feature], expected, rtol=1e-4, atol=1e-5 * np.abs(found).max())


def test_features_that_say_nothing_hardly_move_a_sample() -> None:
    X, y = data(300)
    moves = np.abs(SDR(random_state=0).fit(X / X.std(axis=0), y).explain(X / X.std(axis=0))).mean(axis=(0, 1))
    assert min(moves[:2]) > 3 * max(moves[2:])


def test_places_give_back_what_the_picture_shows() -> None:
    """A curve in three dimensions has one coordinate, so that a place tells the sample."""
    t = np.random.default_rng(0).uniform(0, 3, size=400)
    X = np.c_[np.sin(2 * t), np.cos(2 * t), t] * [1.0, 1.0, 100.0]
    model = SDR(n_prototypes=40, length_scale="ard", random_state=0).fit(X[:300], t[:300])
    back = model.inverse_transform(model.transform(X[300:]))
    missed = ((back - X[300:]) ** 2).mean(axis=0) / X.var(axis=0)
    assert missed.max() < 0.1


def test_places_on_shards_and_of_sparse_features() -> None:
    X, _ = data()
    thin = sparse.csr_array(np.where(X > 0, X, 0.0))
    model = DistR(n_prototypes=10, random_state=0).fit(thin)
    assert model.inverse_transform(model.prototypes_).shape == (10, 4)
    assert np.isfinite(model.explain(thin[:3].toarray())).all()


def test_distances_have_no_features_and_places_have_a_shape() -> None:
    X, y = data(40)
    model = SDR(n_prototypes=5, metric="precomputed", random_state=0).fit(cdist(X, X), y)
    with pytest.raises(InvalidInputError, match="explain needs features"):
        model.explain(cdist(X, X))
    with pytest.raises(InvalidInputError, match="3 columns; places of this embedding have 2"):
        SDR(n_prototypes=5, random_state=0).fit(X, y).inverse_transform(np.zeros((2, 3)))

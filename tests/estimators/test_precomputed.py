"""metric="precomputed": distances in place of features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from distreduce import SDR, DistR
from distreduce.exceptions import IllConditionedWarning, InvalidInputError, OptimisticPictureWarning

# Rounding differs between the two ways to the same distances, so that only a converged fit agrees to many digits.
TIGHT: dict[str, Any] = {"random_state": 0, "tol": 1e-10, "max_inner_iter": 3000}


def aligned(Z: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Z under the orthogonal map that brings it nearest to `reference`: the axes of an embedding are arbitrary."""
    U, _, Vt = np.linalg.svd((Z - Z.mean(axis=0)).T @ (reference - reference.mean(axis=0)))
    return (Z - Z.mean(axis=0)) @ U @ Vt + reference.mean(axis=0)


@pytest.mark.parametrize("estimator", [SDR.paper, DistR])
def test_distances_of_x_give_the_embedding_of_x(estimator: Any, regression: Any) -> None:
    X, y = regression
    order = np.argsort(y)  # distances cannot be sorted by value, so give both fits the same start
    X, y = X[order], y[order]
    features = estimator(**TIGHT).fit(X, y)
    distances = estimator(metric="precomputed", **TIGHT).fit(cdist(X, X), y)
    assert_allclose(aligned(distances.embedding_, features.embedding_), features.embedding_, atol=0.02)


@pytest.mark.parametrize("estimator", [SDR.paper, DistR])
def test_distances_of_x_reach_the_objective_of_x(estimator: Any, regression: Any) -> None:
    X, y = regression
    features = estimator(**TIGHT).fit(X, y)
    distances = estimator(metric="precomputed", **TIGHT).fit(cdist(X, X), y)
    assert distances.objective_ == pytest.approx(features.objective_, rel=1e-4)


def test_reduction_from_distances_has_the_same_shares(classification: Any) -> None:
    X, y = classification
    init = np.arange(len(X)) % 7
    features = SDR.paper(n_prototypes=7, init=init, **TIGHT).fit(X, y)
    distances = SDR.paper(n_prototypes=7, init=init, metric="precomputed", **TIGHT).fit(cdist(X, X), y)
    assert_allclose(distances.prototype_weights_, features.prototype_weights_, atol=1e-6)


@pytest.mark.parametrize("n_prototypes", [None, 7])
def test_transform_takes_distances_to_the_samples_of_the_fit(n_prototypes: Any, classification: Any) -> None:
    X, y = classification
    train, new = X[:60], X[60:]
    model = SDR.paper(metric="precomputed", n_prototypes=n_prototypes, random_state=0).fit(cdist(train, train), y[:60])
    by_features = SDR.paper(n_prototypes=n_prototypes, random_state=0).fit(train, y[:60])
    # The same map, asked through distances: coefficients of one fit with the kernel of the other.
    K = np.exp(-(cdist(new, train) ** 2) / np.median(cdist(train, train)[np.triu_indices(60, 1)] ** 2))
    K_train = np.exp(-(cdist(train, train) ** 2) / np.median(cdist(train, train)[np.triu_indices(60, 1)] ** 2))
    L = np.linalg.solve(K_train + 0.01 * np.eye(60), model.coupling_ @ model.prototypes_)
    assert_allclose(model.transform(cdist(new, train)), K @ L, atol=5e-3)
    assert by_features.n_features_in_ == X.shape[1] and model.n_features_in_ == 60


def test_samples_of_weight_zero_keep_their_column(classification: Any) -> None:
    X, y = classification
    weights = np.ones(len(X))
    weights[::5] = 0.0
    model = SDR(metric="precomputed", random_state=0).fit(cdist(X, X), y, sample_weight=weights)
    assert_allclose(model.transform(cdist(X, X)), model.embedding_, atol=1e-12)


@pytest.mark.parametrize("model", [DistR(metric="precomputed"), SDR(metric="precomputed", n_prototypes=8)], ids=repr)
def test_distances_that_are_not_euclidean(rng: np.random.Generator, model: Any) -> None:
    X = rng.normal(size=(50, 4))
    with pytest.warns(IllConditionedWarning, match="not positive definite") as caught:
        model.set_params(random_state=0).fit(cdist(X, X, "cityblock"), X[:, 0])
    assert np.isfinite(model.embedding_).all()
    assert {each.filename for each in caught} == {__file__}  # so that Python shows each message once


@pytest.mark.parametrize("metric", ["cosine", "correlation", "cityblock", "jaccard"])
def test_ordinary_distances_work(classification: Any, metric: str) -> None:
    X, y = classification
    features = X > np.median(X, axis=0) if metric == "jaccard" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimisticPictureWarning)
        warnings.simplefilter("ignore", IllConditionedWarning)  # which advises a square root
        model = SDR(metric="precomputed", n_prototypes=8, random_state=0).fit(cdist(features, features, metric), y)
    assert model.neighbor_scores_["left_out"] > 1.5 * np.bincount(y).max() / len(y)


def test_used_samples_at_one_place_are_an_error(classification: Any) -> None:
    """Only a sample of weight zero lies elsewhere."""
    D = np.zeros((6, 6))
    D[5, :5] = D[:5, 5] = 1.0
    with pytest.raises(InvalidInputError, match="X is constant"):
        DistR(metric="precomputed").fit(D, sample_weight=[1, 1, 1, 1, 1, 0])


def test_permuted_distances_give_the_permuted_weights(classification: Any, rng: np.random.Generator) -> None:
    X, y = classification
    D, order = cdist(X, X), rng.permutation(len(X))
    init = np.arange(len(X)) % 7
    model = SDR.paper(metric="precomputed", n_prototypes=7, init=init, **TIGHT).fit(D, y)
    moved = SDR.paper(metric="precomputed", n_prototypes=7, init=init[order], **TIGHT)
    moved.fit(D[np.ix_(order, order)], y[order])
    assert_array_equal(moved.labels_, model.labels_[order])

"""Cluster-then-DR and DR-then-Cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score, homogeneity_score
from some_checks import ABOUT_A_BASELINE, parametrize_with_some_checks

import data_sets
from distreduce import DistR
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import reduction_scores
from distreduce_paper.baselines import ClusterThenReduce, ReduceThenCluster

X, y = load_iris(return_X_y=True)
METHODS = [ClusterThenReduce, ReduceThenCluster]


@parametrize_with_some_checks(
    [
        ClusterThenReduce(n_prototypes=4),
        ClusterThenReduce(n_prototypes=4, clustering="kmeans"),
        ReduceThenCluster(n_prototypes=4),
    ],
    ABOUT_A_BASELINE,
)
def test_scikit_learn_accepts_the_reduction(estimator: Any, check: Any) -> None:
    check(estimator)


def fitted(method: type, clustering: str) -> Any:
    return method(n_prototypes=12, clustering=clustering, random_state=0).fit(X)


@pytest.fixture(scope="module", params=[(method, way) for method in METHODS for way in ("spectral", "kmeans")])
def model(request: Any) -> Any:
    return fitted(*request.param)


def test_every_sample_belongs_to_one_cluster(model: Any) -> None:
    np.testing.assert_array_equal(model.coupling_.toarray(), np.eye(12)[model.labels_])


def test_weights_are_the_clusters_shares(model: Any) -> None:
    np.testing.assert_allclose(model.prototype_weights_, np.bincount(model.labels_) / len(X))


def test_medoids_belong_to_their_clusters(model: Any) -> None:
    np.testing.assert_array_equal(model.labels_[model.prototype_medoids_], np.arange(12))


def test_scores_are_those_of_the_labels(model: Any) -> None:
    assert reduction_scores(model, y)["homogeneity"] == pytest.approx(100 * homogeneity_score(y, model.labels_))


def test_targets_are_ignored(model: Any) -> None:
    np.testing.assert_array_equal(type(model)(**model.get_params()).fit(X, y).prototypes_, model.prototypes_)


def test_means_of_clusters_are_embedded() -> None:
    model = fitted(ClusterThenReduce, "spectral")
    means = pd.DataFrame(X).groupby(model.labels_).mean().to_numpy()
    np.testing.assert_allclose(DistR(perplexity=4).fit(means).prototypes_, model.prototypes_, atol=1e-10)


def test_embedding_is_clustered() -> None:
    model = fitted(ReduceThenCluster, "kmeans")
    Z = DistR(random_state=0, max_iter=0, max_inner_iter=5000).fit(X).prototypes_
    means = pd.DataFrame(Z).groupby(model.labels_).mean().to_numpy()
    np.testing.assert_allclose(means, model.prototypes_, atol=1e-10)


@pytest.mark.parametrize("clustering", ["spectral", "kmeans"])
@pytest.mark.parametrize("method", METHODS)
def test_separate_groups_are_found(method: type, clustering: str) -> None:
    points, group = make_blobs(120, 5, centers=4, cluster_std=0.3, random_state=0)
    found = method(n_prototypes=4, clustering=clustering, perplexity=20, random_state=0).fit(points)
    assert adjusted_rand_score(group, found.labels_) == 1.0


@pytest.mark.parametrize("method", METHODS)
def test_more_prototypes_than_samples_are_refused(method: type) -> None:
    with pytest.raises(InvalidInputError, match="n_prototypes=151 .* 150"):
        method(n_prototypes=151).fit(X)


@pytest.mark.parametrize("method", METHODS)
def test_global_random_numbers_are_not_touched(method: type) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    method(n_prototypes=5).fit(X[::3])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_coil20_prototypes_carry_few_objects_each(method: type, data_dir: Path) -> None:
    images, objects = (part[::3] for part in data_sets.coil20(data_dir))
    found = method(n_prototypes=60, perplexity=20, random_state=0).fit(images)
    scores = reduction_scores(found, objects)
    assert scores["homogeneity"] > 85 and scores["nmi"] > 60

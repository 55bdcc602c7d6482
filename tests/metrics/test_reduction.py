"""Scores of fitted models; criticisms are the samples that were planted to be represented badly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import homogeneity_score

from distreduce import SDR, DistR
from distreduce.metrics import criticisms, kmeans_nmi, reduction_scores, weighted_silhouette

X, y = load_iris(return_X_y=True)


@pytest.fixture(scope="module", params=[SDR, DistR])
def model(request: Any) -> Any:
    return request.param(n_prototypes=12, random_state=0).fit(X, y)


def test_homogeneity_in_percent(model: Any) -> None:
    assert reduction_scores(model, y)["homogeneity"] == pytest.approx(100 * homogeneity_score(y, model.labels_))


def test_nmi_and_silhouette_in_percent(model: Any) -> None:
    Z, T, weights = model.prototypes_, model.coupling_, model.prototype_weights_
    expected = (100 * kmeans_nmi(Z, T, y, weights), 100 * weighted_silhouette(Z, T, y, weights))
    found = reduction_scores(model, y)
    assert (found["nmi"], found["silhouette"]) == pytest.approx(expected)


def test_cka_is_that_of_the_fit() -> None:
    model = SDR.paper(n_prototypes=12, random_state=0).fit(X, y)
    assert reduction_scores(model, y)["cka"] == pytest.approx(model.history_["cka"].iloc[-1], abs=1e-10)


@pytest.mark.parametrize("targets", [X[:, 0] + 0.01 * X[:, 1], X[:, :2]])
def test_cka_of_numbers_is_that_of_the_fit(targets: np.ndarray) -> None:
    model = SDR.paper(n_prototypes=12, random_state=0).fit(X, targets)
    assert reduction_scores(model, targets)["cka"] == pytest.approx(model.history_["cka"].iloc[-1], abs=1e-9)


def test_cka_of_a_weighted_fit() -> None:
    weights = 1.0 + np.arange(150) % 3
    model = SDR.paper(n_prototypes=12, random_state=0).fit(X, y, sample_weight=weights)
    found = reduction_scores(model, y, sample_weight=weights)["cka"]
    assert found == pytest.approx(model.history_["cka"].iloc[-1], abs=1e-10)


def test_numbers_have_no_class_scores() -> None:
    model = SDR.paper(n_prototypes=12, random_state=0).fit(X, X[:, 0] + 0.01 * X[:, 1])
    found = reduction_scores(model, X[:, 0] + 0.01 * X[:, 1])
    assert all(np.isnan(found[name]) for name in ("homogeneity", "nmi", "silhouette"))


def test_names_of_the_classes_do_not_matter(model: Any) -> None:
    assert reduction_scores(model, load_iris().target_names[y]) == pytest.approx(reduction_scores(model, y))


def test_samples_without_label_take_no_part(model: Any) -> None:
    partly = y.astype(float)
    partly[::4] = np.nan
    known = ~np.isnan(partly)
    expected = 100 * homogeneity_score(y[known], model.labels_[known])
    assert reduction_scores(model, partly)["homogeneity"] == pytest.approx(expected)


def test_supervision_is_seen_by_every_score() -> None:
    supervised, blind = (kind(n_prototypes=12, random_state=0).fit(X, y) for kind in (SDR.paper, DistR))
    high, low = reduction_scores(supervised, y), reduction_scores(blind, y)
    assert all(high[name] > low[name] for name in high)


@pytest.fixture(scope="module")
def groups():
    """Three distant groups, in which sample 7 has the label of another group and sample 11 lies between all three."""
    X, y = make_blobs(150, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    X[11] = [3.0, 3.0]
    given = np.array(["a", "b", "c"])[y]
    given[7] = "b" if given[7] != "b" else "a"
    return X, given, SDR(n_prototypes=6, random_state=0).fit(X, given)


def test_a_wrong_label_and_an_outlier_are_found(groups):
    X, y, model = groups
    assert {7, 11} <= set(criticisms(model, y, n=4).index)


def test_the_wrong_label_is_a_surprise_and_the_outlier_is_far(groups):
    X, y, model = groups
    found = criticisms(model, y, n=len(X))
    assert found["surprise"].idxmax() == 7 and found.loc[11, "distance"] > 2


def test_surprise_is_that_of_a_normal_distribution_around_the_evidence(groups):
    X, _, _ = groups
    y = X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    model = SDR(n_prototypes=6, random_state=0).fit(X, y)
    found = criticisms(model, y, n=len(X)).sort_index()
    near = model.prototype_evidence_.loc[found["prototype"]]
    deviation = (y - near["mean y0"].to_numpy()) / near["sd y0"].to_numpy()
    np.testing.assert_allclose(found["surprise"], deviation**2 / 2)


def test_distances_are_those_to_the_nearest_prototype_in_use(groups):
    _, y, model = groups
    found = criticisms(model, y, n=150).sort_index()
    used = model.prototypes_[model.prototype_weights_ > 0]
    distances = np.linalg.norm(model.embedding_left_out_[:, None] - used, axis=2).min(axis=1)
    np.testing.assert_allclose(found["distance"], distances / np.sqrt(np.mean(distances**2)), atol=1e-8)


def test_unknown_targets_and_models_without_them_are_judged_by_distance(groups):
    X, y, model = groups
    partly = pd.Series(y, dtype=object)
    partly[7] = None
    assert np.isnan(criticisms(model, partly, n=150).loc[7, "surprise"])
    far = criticisms(DistR(n_prototypes=6, random_state=0).fit(X), y)
    assert far["surprise"].isna().all() and far["distance"].is_monotonic_decreasing

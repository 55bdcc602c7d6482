"""Criticisms are the samples that were planted to be represented badly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from distreduce import SDR, DistR
from distreduce.metrics import criticisms


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
    np.testing.assert_allclose(found["distance"], distances / np.sqrt(np.mean(distances**2)))


def test_unknown_targets_and_models_without_them_are_judged_by_distance(groups):
    X, y, model = groups
    partly = pd.Series(y, dtype=object)
    partly[7] = None
    assert np.isnan(criticisms(model, partly, n=150).loc[7, "surprise"])
    far = criticisms(DistR(n_prototypes=6, random_state=0).fit(X), y)
    assert far["surprise"].isna().all() and far["distance"].is_monotonic_decreasing

"""What a fitted estimator offers, and what it means."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import pairwise_distances_argmin

from distreduce import SDR, DistR
from distreduce._utils.numerics import nearest
from distreduce.estimators._fitted import merge_crowded

CASES = [(SDR, None), (SDR, 9), (DistR, None), (DistR, 9)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def fitted(request: Any, classification: Any) -> Any:
    estimator, n_prototypes = request.param
    return estimator(n_components=3, n_prototypes=n_prototypes, random_state=0).fit(*classification)


def test_shapes(fitted: Any, classification: Any) -> None:
    n, d = classification[0].shape
    m = fitted.n_prototypes or n
    shapes = [
        np.shape(getattr(fitted, f"{name}_"))
        for name in ("prototypes", "prototype_weights", "prototype_medoids", "coupling", "labels", "embedding")
    ]
    assert [*shapes, fitted.n_features_in_] == [(m, 3), (m,), (m,), (n, m), (n,), (n, 3), d]


def test_coupling_is_sparse(fitted: Any) -> None:
    assert sparse.issparse(fitted.coupling_)


def test_rows_of_the_coupling_sum_to_one(fitted: Any) -> None:
    assert_allclose(np.asarray(fitted.coupling_.sum(axis=1)).ravel(), 1.0, rtol=0, atol=1e-10)


def test_coupling_is_not_negative(fitted: Any) -> None:
    assert fitted.coupling_.data.min() >= 0


def test_weights_sum_to_one(fitted: Any) -> None:
    assert fitted.prototype_weights_.sum() == pytest.approx(1.0, abs=1e-12)


def test_weights_are_the_masses_of_the_columns(fitted: Any) -> None:
    assert_allclose(fitted.prototype_weights_, np.asarray(fitted.coupling_.mean(axis=0)).ravel(), atol=1e-12)


def test_labels_are_the_largest_entries_of_the_rows(fitted: Any) -> None:
    assert_array_equal(fitted.labels_, fitted.coupling_.toarray().argmax(axis=1))


def test_medoids_are_the_members_nearest_to_their_means(fitted: Any, classification: Any) -> None:
    """Of features and targets. Unused prototypes have the sample nearest to them in the embedding."""
    (X, y), T = classification[:2], fitted.coupling_.toarray()
    to_means = np.zeros(T.shape)
    parts = [X] if isinstance(fitted, DistR) else [X, (y[:, None] == fitted.classes_).astype(float)]
    for part in parts:
        means = (T / np.maximum(T.sum(axis=0), 1e-300)).T @ part
        far = ((part[:, None] - means) ** 2).sum(axis=2)
        to_means += far / ((T * far).sum() / T.sum() or 1.0)
    in_plane = ((fitted.embedding_[:, None] - fitted.prototypes_) ** 2).sum(axis=2)
    distances = np.where(T.sum(axis=0) > 0, np.where(T > 0, to_means, np.inf), in_plane)
    assert_allclose(distances[fitted.prototype_medoids_, np.arange(T.shape[1])], distances.min(axis=0), rtol=1e-9)


def test_embedding_is_the_transform(fitted: Any, classification: Any) -> None:
    assert_allclose(fitted.transform(classification[0]), fitted.embedding_, rtol=0, atol=1e-12)


def test_fit_transform_is_fit_and_transform(fitted: Any, classification: Any) -> None:
    again = type(fitted)(**fitted.get_params()).fit_transform(*classification)
    assert_array_equal(again, fitted.embedding_)


def test_embedding_is_near_the_prototypes(fitted: Any) -> None:
    """The map is fitted to T Z: it explains nearly all of it."""
    F = fitted.coupling_ @ fitted.prototypes_
    assert ((fitted.embedding_ - F) ** 2).sum() < 0.2 * ((F - F.mean(axis=0)) ** 2).sum()


def test_map_is_kernel_ridge_regression_to_the_prototypes(classification: Any) -> None:
    """Against scikit-learn's KernelRidge with the kernel that the documentation of `length_scale` names."""
    from scipy.spatial.distance import pdist
    from sklearn.kernel_ridge import KernelRidge

    X, y = classification
    model = SDR.paper(n_prototypes=9, random_state=0, mu=2.0, map_reg=0.06).fit(X, y)
    ridge = KernelRidge(kernel="rbf", gamma=1 / np.median(pdist(X, "sqeuclidean")), alpha=0.06 / 2.0)
    new = X[:10] + 0.1
    expected = ridge.fit(X, model.coupling_ @ model.prototypes_).predict(new)
    assert_allclose(model.transform(new), expected, atol=2e-3)


def test_history_never_rises(fitted: Any) -> None:
    assert (np.diff(fitted.history_["objective"]) <= 0).all()


def test_history_has_a_row_an_iteration(fitted: Any) -> None:
    assert (len(fitted.history_), fitted.history_["iteration"].tolist()) == (
        fitted.n_iter_,
        list(range(fitted.n_iter_)),
    )


def test_objective_is_the_sum_of_its_terms(fitted: Any) -> None:
    terms = fitted.history_[["supervision", "gromov_wasserstein", "dependence", "projection"]].sum(axis=1)
    assert_allclose(fitted.history_["objective"], terms, rtol=1e-12)


def test_objective_is_the_last_of_the_history(fitted: Any) -> None:
    assert (fitted.objective_, fitted.converged_) == (fitted.history_["objective"].iloc[-1], True)


def test_summary_has_a_row_a_prototype_heaviest_first(fitted: Any) -> None:
    table = fitted.summary()
    assert (len(table), (np.diff(table["weight"]) <= 0).all()) == (np.count_nonzero(fitted.prototype_weights_), True)


def test_summary_leaves_out_prototypes_that_stand_for_no_sample(classification: Any) -> None:
    X, y = classification
    model = SDR(n_prototypes=5, random_state=0).fit(X, y)
    model.prototype_weights_ = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    assert model.summary().index.tolist() == [0, 2, 3]


def test_summary_counts_the_samples(fitted: Any) -> None:
    table = fitted.summary()
    counts = pd.Series(fitted.labels_).value_counts().reindex(table.index, fill_value=0)
    assert_array_equal(table["n_samples"], counts)


def test_summary_tells_places_and_targets(classification: Any) -> None:
    X, y = classification
    model = SDR(n_prototypes=5, random_state=0).fit(X, np.array(["ash", "birch", "cedar"])[y])
    names = ["weight", "n_samples", "medoid", "sdr0", "sdr1", "share of ash", "share of birch", "share of cedar"]
    columns = model.summary().columns.tolist()
    assert columns[: len(names)] == names
    assert columns[len(names) : len(names) + 2] == ["left-out n_samples", "left-out share of ash"]


def test_cka_of_the_history_is_that_of_the_prototypes(classification: Any) -> None:
    """Against the definition: Gram matrices of used prototypes, doubly centred by hand."""
    model = SDR.paper(n_prototypes=9, random_state=0).fit(*classification)
    used = model.prototype_weights_ > 0
    Z, G = model.prototypes_[used], model.prototype_targets_[used]
    H = np.eye(len(Z)) - 1 / len(Z)
    K = H @ (1 / (1 + ((Z[:, None] - Z) ** 2).sum(axis=2) / 2)) @ H
    L = H @ (G @ G.T) @ H
    expected = (K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum())
    assert model.history_["cka"].iloc[-1] == pytest.approx(expected, abs=1e-10)


def test_supervision_raises_the_dependence(classification: Any) -> None:
    with_eta, without = (SDR(n_prototypes=9, eta=eta, random_state=0).fit(*classification) for eta in (1000.0, 0.0))
    assert with_eta.history_["cka"].iloc[-1] > without.history_["cka"].iloc[-1] + 0.1


def test_default_perplexity_is_lowered_on_small_data(classification: Any) -> None:
    X, y = classification
    assert DistR().fit(X).perplexity_ == pytest.approx(80 / 3)


def test_distr_ignores_targets(classification: Any) -> None:
    X, y = classification
    assert_array_equal(DistR(random_state=0).fit_transform(X, y), DistR(random_state=0).fit_transform(X))


def test_rows_of_weight_zero_take_little_memory():
    """5 kB each, once."""
    rng = np.random.default_rng(0)
    places, points = rng.normal(size=(200, 2)), rng.normal(size=(60_000, 2))
    tracemalloc.start()
    found = nearest(points, places)[1].ravel()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1000 * len(points)
    np.testing.assert_array_equal(found, pairwise_distances_argmin(points, places))


def test_prototypes_that_a_picture_cannot_show_apart_are_merged(rng: np.random.Generator) -> None:
    """Two clear classes: most of 40 prototypes lay on two spots, marks that nobody could click."""
    y = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 3)) * 0.1 + 4.0 * y[:, None]
    model = SDR(n_prototypes=40, random_state=0, tol=1e-3).fit(X, y)
    used = np.flatnonzero(model.prototype_weights_)
    gaps = pdist(model.prototypes_[used])
    assert gaps.min() >= 0.003 * np.ptp(model.embedding_, axis=0).max()  # means of what was merged may come nearer
    # Nothing is lost: all samples belong to prototypes in use, which are represented by samples of their own.
    assert_allclose(model.coupling_.sum(axis=1), 1.0)
    assert_allclose(model.coupling_.sum(axis=0) / 200, model.prototype_weights_, atol=1e-12)
    assert set(model.labels_) == set(used)
    assert_array_equal(model.labels_[model.prototype_medoids_[used]], used)


@given(arrays(float, (12, 2), elements=st.floats(-1, 1)), arrays(float, 12, elements=st.integers(0, 3)))
def test_light_prototypes_join_the_nearest_heavy_one(places: np.ndarray, mass: np.ndarray) -> None:
    merged = merge_crowded(sparse.csr_array(np.diag(mass)), places, 30.0)
    kept = np.flatnonzero(merged.sum(axis=0))
    distances = cdist(places, places[kept])
    for k in np.flatnonzero(mass):
        (own,) = merged[[k]].toarray()[0].nonzero()[0]
        if k in kept:
            assert own == k and (np.delete(distances[k], kept == k) >= 0.15).all()
        else:  # the nearest of those that were kept before it
            before = (mass[kept] > mass[k]) | ((mass[kept] == mass[k]) & (kept < k))
            assert distances[k][kept == own] == distances[k][before].min() < 0.15
    assert merged.sum() == mass.sum()

"""What a prototype is made of and which samples stand beside it, against plain loops over the coupling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import pairwise_distances

from distreduce import SDR, DistR
from distreduce.report import content
from distreduce.report.content import Subject, collect_rows, select
from distreduce.report.prototypes import N_NEAREST, Distribution, find_distribution, find_nearest

ALL = np.arange(12)


def test_shares_are_those_of_the_coupling(classes, labels):
    used = np.flatnonzero(classes.prototype_weights_)
    T = classes.coupling_.toarray()[:, used]
    expected = np.array([[column[labels == name].sum() / column.sum() for name in classes.classes_] for column in T.T])
    np.testing.assert_allclose(find_distribution(classes, labels, used, 0, "species").shares, expected)


@pytest.mark.parametrize("what", ["mean", "spread"])
def test_means_and_spreads_are_those_of_the_samples(numbers, lengths, what):
    used = np.flatnonzero(numbers.prototype_weights_)
    T = numbers.coupling_.toarray()[:, used]
    means = np.array([np.average(lengths, weights=column) for column in T.T])
    spreads = np.array(
        [np.sqrt(np.average((lengths - m) ** 2, weights=column)) for m, column in zip(means, T.T, strict=True)]
    )
    found = find_distribution(numbers, lengths, used, 0, "length")
    np.testing.assert_allclose(getattr(found, what), {"mean": means, "spread": spreads}[what], atol=1e-9)


def test_without_y_a_model_knows_its_own_shares(classes):
    np.testing.assert_array_equal(find_distribution(classes, None, ALL, 0, "").shares, classes.prototype_targets_)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Distribution("species", ["a", "b"], np.array([[0.25, 0.75]])), "b (75%)"),
        (Distribution("length", [], None, np.array([-1.5]), np.array([0.123])), "−1.5 ± 0.12"),
        (Distribution("length", [], None, np.array([3.0])), "3"),
        (
            Distribution("length", [], None, np.array([3.0]), low=np.array([1.234]), high=np.array([5.0])),
            "3 (1.23 to 5)",
        ),
    ],
    ids=["class", "number", "number without spread", "number with its range"],
)
def test_a_prototype_in_words(found, words):
    assert found.describe(0) == words


def test_the_heat_map_goes_from_the_first_class_to_the_last(classes, labels):
    found = find_distribution(classes, labels, ALL, 0, "species")
    main = found.shares.argmax(axis=1)[found.encode()["order"]]
    assert (np.diff(main) >= 0).all()


def test_the_medoid_comes_first(classes, X):
    assert [rows[0] for rows in find_nearest(classes, X, ALL)] == classes.prototype_medoids_.tolist()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_neighbours_are_those_of_its_samples_that_are_most_like_the_medoid(classes, X, kind):
    places = pairwise_distances(classes.prototypes_, classes.embedding_left_out_)
    places[classes.prototype_weights_ == 0] = np.inf
    distances = pairwise_distances(X)
    for k, (medoid, *rows) in enumerate(find_nearest(classes, sparse.csr_array(X) if kind == "sparse" else X, ALL)):
        others = [i for i in np.flatnonzero(places.argmin(axis=0) == k) if i != medoid]
        expected = np.sort(distances[medoid, others])[:N_NEAREST]
        assert set(rows) <= set(others)
        np.testing.assert_allclose(distances[medoid, rows], expected, atol=1e-6)


def test_neighbours_by_precomputed_distances_are_those_in_x(X, labels):
    D = pairwise_distances(X)
    model = SDR.paper(n_prototypes=12, metric="precomputed", random_state=0, max_iter=1, tol=1.0).fit(D, labels)
    for given, distances in zip(find_nearest(model, D, ALL), find_nearest(model, D**2, ALL), strict=True):
        assert given == distances  # the order is that of the entries of D
        assert (np.diff(D[given[0], given[1:]]) >= 0).all()


def test_means_and_shares_of_a_weighted_fit_are_weighted(X, labels, lengths):
    heavy = np.where(lengths > 4, 20.0, 1.0)
    model = SDR(n_prototypes=5, task="regression", random_state=0).fit(X, lengths, sample_weight=heavy)
    found = find_distribution(model, lengths, np.arange(5), 0, "length", heavy)
    np.testing.assert_allclose(found.mean, model.prototype_targets_[:, 0])
    model = SDR(n_prototypes=5, random_state=0).fit(X, labels, sample_weight=heavy)
    found = find_distribution(model, labels, np.arange(5), 0, "species", heavy)
    np.testing.assert_allclose(found.shares, model.prototype_targets_, atol=1e-12)


def test_where_every_sample_is_a_prototype_the_nearest_are_of_all(X):
    model = DistR(random_state=0, max_iter=1).fit(X[:40])
    assert {len(rows) for rows in find_nearest(model, X[:40], np.arange(40))} == {N_NEAREST + 1}


def test_rows_are_carried_once_and_in_the_columns_of_the_table(classes, labels):
    table = pd.DataFrame({"number": np.arange(150), "text": [f"r{k}" for k in range(150)]})
    node = collect_rows([[5, 3], [3]], Subject(classes, None, labels, table, np.arange(150), None))
    assert node["rows"] == [3, 5] and node["nearest"] == [[1, 0], [0]] and node["cells"] == [["3", "5"], ["r3", "r5"]]


def test_images_fill_the_range_of_grey(unpack):
    images = np.array([[0.0, 0.5], [1.0, 0.25]])
    node = collect_rows([[0], [1]], Subject(None, images, None, None, np.arange(2), (1, 2)))["images"]
    assert unpack(node["pixels"]).tolist() == [0, 128, 255, 64]


def test_unused_prototypes_are_not_on_the_page(numbers):
    numbers_on_page = select(numbers).prototypes
    assert set(numbers_on_page) == set(np.flatnonzero(numbers.prototype_weights_))


def test_the_heaviest_come_first(classes):
    assert (np.diff(classes.prototype_weights_[select(classes).prototypes]) <= 0).all()


def test_limits_hold(classes, monkeypatch):
    monkeypatch.setattr(content, "MAX_SAMPLES", 40)
    monkeypatch.setattr(content, "MAX_PROTOTYPES", 5)
    chosen = select(classes)
    assert (len(set(chosen.samples)), len(chosen.prototypes)) == (40, 5)


def test_of_equal_prototypes_those_left_out_are_not_the_last_rows(X, monkeypatch):
    monkeypatch.setattr(content, "MAX_PROTOTYPES", 30)
    model = SDR(random_state=0, max_iter=1, tol=1.0).fit(X[::2], np.repeat([0, 1, 2], 25))
    assert select(model).prototypes.max() > 45

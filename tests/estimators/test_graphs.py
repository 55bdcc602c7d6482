"""A graph of the samples in the place of their affinity."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from distreduce import SDR, DistR
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.exceptions import InvalidInputError
from distreduce.persistence import load


@pytest.fixture
def sorted_blobs(classification):
    X, y = classification
    order = np.lexsort(X.T[::-1])  # as a fit without a graph sorts them
    return X[order], y[order]


@pytest.mark.parametrize("m", [8, None])
def test_the_affinity_of_the_features_as_a_graph_is_the_fit_without_one(sorted_blobs, m):
    X, _ = sorted_blobs
    C = symmetric_entropic_affinity(squared_distances(X), 15.0).matrix
    assert (C.diagonal() >= C.max(axis=1)).all()  # or the graph would get another diagonal

    plain = DistR(n_prototypes=m, perplexity=15.0, random_state=0).fit(X)
    graph = DistR(n_prototypes=m, affinity=C, random_state=0).fit(X)

    assert graph.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    assert (graph.labels_ == plain.labels_).mean() > 0.95


def ring(n=40, parts=2):
    """Two rings without a link, and features that know nothing of them."""
    A = np.zeros((n, n))
    for half in np.split(np.arange(n), parts):
        A[half, np.roll(half, 1)] = A[half, np.roll(half, 2)] = 1.0
    return A


def test_the_graph_decides_who_is_near_and_the_features_where_new_samples_go(rng):
    X = rng.normal(size=(40, 3))

    model = DistR(n_prototypes=2, affinity=ring(), random_state=0).fit(X)

    assert len(set(model.labels_[:20])) == len(set(model.labels_[20:])) == 1
    assert model.labels_[0] != model.labels_[-1]
    assert model.transform(X) == pytest.approx(model.embedding_)
    assert model.n_features_in_ == 3


def test_equal_features_with_different_neighbours_stay_apart():
    X = np.tile(np.eye(2), (20, 1))  # two kinds of rows, in both rings

    model = DistR(n_prototypes=2, affinity=ring(), random_state=0).fit(X)

    assert model.labels_[0] != model.labels_[20]


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
def test_a_graph_alone_is_its_own_features(convert):
    A = ring() + np.eye(40)
    y = np.repeat(["a", "b"], 20)

    model = SDR(n_prototypes=4, affinity="precomputed", random_state=0).fit(convert(A), y)

    # A new sample is the row of its similarities to those of the fit.
    assert model.transform(convert(A[:3])) == pytest.approx(model.embedding_[:3])
    assert model.__sklearn_tags__().input_tags.pairwise
    assert (model.classes_[model.prototype_targets_.argmax(axis=1)][model.labels_] == y).all()


def test_a_model_with_a_graph_is_cloned_saved_and_loaded(tmp_path, rng):
    X = rng.normal(size=(40, 3))
    model = clone(DistR(n_prototypes=4, affinity=ring(), random_state=0)).fit(X)

    model.save(tmp_path / "graph.distreduce")

    assert (load(tmp_path / "graph.distreduce").transform(X) == model.transform(X)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"affinity": np.ones((5, 40))}, r"similarities of the 40 samples, \(40, 40\); got \(5, 40\)"),
        ({"affinity": -ring()}, "must not be negative, but holds -1.0"),
        ({"affinity": np.eye(40)}, "no entry between two different samples"),
        ({"affinity": ring(), "metric": "precomputed"}, "not as metric='precomputed'"),
        ({"affinity": "precomputed"}, r"similarities of the 40 samples, \(40, 40\); got \(40, 3\)"),
    ],
)
def test_graphs_that_are_none(options, words, rng):
    X = rng.normal(size=(40, 40 if "metric" in options else 3))
    if "metric" in options:
        X = np.abs(X - X.T)
    with pytest.raises(InvalidInputError, match=words):
        DistR(n_prototypes=4, **options).fit(X)

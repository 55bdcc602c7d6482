"""Scores of weighted prototypes against scikit-learn on data in which every prototype stands once a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.metrics import homogeneity_score, normalized_mutual_info_score, silhouette_samples

from distreduce import metrics
from distreduce.dependence import cka, hsic
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import homogeneity, kmeans_nmi, weighted_silhouette

KINDS = {
    "numbers": lambda hard, m: hard,
    "list": lambda hard, m: hard.tolist(),
    "dense": lambda hard, m: np.eye(m)[hard],
    "csr": lambda hard, m: sparse.csr_array(np.eye(m)[hard]),
    "csc": lambda hard, m: sparse.csc_matrix(np.eye(m)[hard]),
}


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """12 prototypes of which number 7 is unused, the prototype of 60 samples, and their classes."""
    Z = rng.normal(size=(12, 2)) + 6 * (np.arange(12) % 3)[:, None]
    Z[7] = 1000.0
    hard = rng.choice(np.delete(np.arange(12), 7), 60)
    y = np.where(rng.random(60) < 0.85, hard % 3, rng.integers(0, 3, 60))
    return Z, hard, np.array(["u", "v", "w"])[y]


@pytest.mark.parametrize("kind", KINDS)
def test_homogeneity_is_that_of_the_hard_assignment(kind: str, data: Any) -> None:
    _, hard, y = data
    assert homogeneity(y, KINDS[kind](hard, 12)) == pytest.approx(homogeneity_score(y, hard), abs=1e-12)


def test_homogeneity_takes_the_row_maximum(data: Any) -> None:
    _, hard, y = data
    soft = 0.6 * np.eye(12)[hard] + 0.4 / 12
    assert homogeneity(y, soft) == pytest.approx(homogeneity_score(y, hard), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_nmi_is_that_of_kmeans_on_the_repeated_prototypes(kind: str, data: Any) -> None:
    """k-means of prototypes weighted by their counts is k-means of the prototypes repeated once a sample."""
    Z, hard, y = data
    clusters = KMeans(3, n_init=50, random_state=1).fit_predict(Z[hard])
    expected = normalized_mutual_info_score(y, clusters)
    assert kmeans_nmi(Z, KINDS[kind](hard, 12), y) == pytest.approx(expected, abs=1e-12)


def test_weights_move_the_clusters() -> None:
    """Two heavy and two light groups on a line: which of them share a cluster is the weights' affair."""
    Z = np.array([[0.0], [4.0], [10.0]])
    y = ["u", "v", "v"]
    light, heavy = (kmeans_nmi(Z, [0, 1, 2], y, weights) for weights in ([1, 1, 1], [100, 100, 1e-6]))
    assert (light < 0.5, heavy == 1.0) == (True, True)


def test_unused_prototypes_take_no_part_in_the_clusters(data: Any) -> None:
    Z, hard, y = data
    moved = Z.copy()
    moved[7] = 0.0
    assert kmeans_nmi(Z, hard, y) == kmeans_nmi(moved, hard, y)


@pytest.mark.parametrize("kind", KINDS)
def test_silhouette_is_the_weighted_mean_of_scikit_learns(kind: str, data: Any) -> None:
    Z, hard, y = data
    used = np.unique(hard)
    colours = [max(set(y), key=lambda label, k=k: (np.sum((hard == k) & (y == label)), -ord(label))) for k in used]
    counts = np.bincount(hard, minlength=12)[used]
    expected = np.average(silhouette_samples(Z[used], colours), weights=counts)
    assert weighted_silhouette(Z, KINDS[kind](hard, 12), y) == pytest.approx(expected, abs=1e-12)


def test_silhouette_colours_by_all_shares() -> None:
    """Each sample leans to prototype 0, but u comes twice and v with more in total on prototype 1."""
    T = np.array([[0.9, 0.1, 0, 0], [0.4, 0.6, 0, 0], [0, 0.3, 0.7, 0], [0, 0, 0, 1.0], [0, 0, 0.1, 0.9]])
    y = ["u", "u", "v", "v", "v"]
    Z = np.array([[0.0], [1.0], [5.0], [7.0]])
    expected = np.average(silhouette_samples(Z, ["u", "u", "v", "v"]), weights=T.sum(axis=0))
    assert weighted_silhouette(Z, T, y) == pytest.approx(expected, abs=1e-12)


def test_silhouette_weighs_the_samples() -> None:
    Z, hard, y = np.array([[0.0], [1.0], [6.0]]), [0, 0, 1, 2], ["u", "v", "u", "v"]
    expected = np.average(silhouette_samples(Z, ["v", "u", "v"]), weights=[2, 1, 1])
    assert weighted_silhouette(Z, hard, y, sample_weight=[1, 5, 1, 1]) == pytest.approx(expected, abs=1e-12)


def test_silhouette_of_one_class_is_undefined() -> None:
    assert np.isnan(weighted_silhouette(np.eye(3), [0, 1, 2], ["u"] * 3))


def test_silhouette_of_lone_prototypes_is_zero() -> None:
    assert weighted_silhouette(np.eye(3), [0, 1, 2], ["u", "v", "w"]) == 0.0


@given(st.permutations(range(12)))
def test_numbering_of_the_prototypes_does_not_matter(order: list[int]) -> None:
    rng = np.random.default_rng(0)
    Z, hard, y = rng.normal(size=(12, 2)), rng.integers(0, 12, 50), rng.integers(0, 3, 50)
    renamed = np.argsort(order)[hard]
    same = weighted_silhouette(Z[order], renamed, y) - weighted_silhouette(Z, hard, y)
    assert abs(same) < 1e-12 and homogeneity(y, renamed) == pytest.approx(homogeneity(y, hard), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(3), [0, 1], ["u", "v", "u"]), "assignment must be 3"),
        ((np.eye(3), [0, 1, 3], ["u", "v", "u"]), "prototype numbers 0 to 3"),
        ((np.eye(3), [0, 1, -1], ["u", "v", "u"]), "prototype numbers -1 to 1"),
        ((np.eye(3), [0.0, 1.0, 2.0], ["u", "v", "u"]), "prototype numbers or a coupling"),
        ((np.eye(3), np.ones((3, 2)), ["u", "v", "u"]), r"shape \(3, 2\)"),
        ((np.eye(3), np.eye(3), ["u", "v", "u"], [1.0, 1.0]), "weights must be 3"),
        ((np.eye(3), np.eye(3), ["u", "v", "u"], [1.0, 1.0, -1.0]), "weights must be 3"),
        ((np.ones(3), np.eye(3), ["u", "v", "u"]), "prototypes must have shape"),
        ((np.eye(3), np.eye(3), [["u"], ["v"], ["u"]]), "labels must be one per sample"),
    ],
)
@pytest.mark.parametrize("score", [kmeans_nmi, weighted_silhouette])
def test_what_does_not_fit_together_is_refused(score: Any, arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        score(*arguments)


def test_dependence_measures_are_here_too() -> None:
    assert (metrics.cka, metrics.hsic) == (cka, hsic)

"""Directions for narrow axes against all directions on a circle, and pictures that are not lines."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_friedman1

from distreduce import SDR
from distreduce.exceptions import SolverConvergenceWarning
from distreduce.kernels import RBF
from distreduce.mapping.axes import WIDTH, find_directions, neighbours_say_less
from distreduce.mapping.left_out import left_out_embedding


def widths(places):
    """Return the standard deviations along the main axes of a picture, ascending."""
    return np.sqrt(np.linalg.eigvalsh(np.cov(places.T)))


def line(rng, n=80):
    """Places on a line along the first of four features, of which the map's kernel sees three."""
    X = rng.normal(size=(n, 4)) * [1.0, 1.0, 0.7, 3.0]
    h = rng.uniform(0.5, 2.0, n)
    places = np.outer(X[:, 0], [0.6, 0.8]) + 1e-3 * rng.normal(size=(n, 2))
    return places, X, RBF(2.0)(X[:, :3]), h


def test_the_direction_is_the_best_on_a_circle(rng):
    places, X, K, h = line(rng)
    X = X[:, :3]
    found = find_directions(places, X, X[:, :1], K, h, 0.5)
    w = h / h.sum()
    centred = X - w @ X
    root = np.sqrt(h)[:, None]
    predicted = left_out_embedding(root * K * root.T, root * centred, 0.5, np.arange(len(X))) / root
    u = centred @ found.features[:, 0]
    across = np.cross(centred.T @ (w * (places @ found.wide[:, 0])), np.eye(3)[1])
    first = across / np.linalg.norm(across)
    second = np.cross(centred.T @ (w * (places @ found.wide[:, 0])), first)
    second /= np.linalg.norm(second)
    angles = np.linspace(0, np.pi, 2001)
    circle = np.outer(np.cos(angles), first) + np.outer(np.sin(angles), second)
    kept = [w @ ((centred @ d) * (predicted @ d)) for d in circle]
    own = found.features[:, 0]
    assert w @ (u * (predicted @ own)) >= max(kept) - 1e-9
    assert abs(w @ (u * (places @ found.wide[:, 0]))) < 1e-9
    np.testing.assert_allclose(np.linalg.norm(own), 1.0)


def test_targets_rise_along_the_wide_axis(rng):
    places, X, K, h = line(rng)
    wide = [places @ find_directions(places, X, sign * X[:, :1], K, h, 0.5).wide[:, 0] for sign in (1, -1)]
    assert np.corrcoef(wide[0], X[:, 0])[0, 1] > 0.9 and np.corrcoef(wide[1], X[:, 0])[0, 1] < -0.9


def test_a_feature_that_the_map_does_not_see_is_not_drawn(rng):
    places, X, K, h = line(rng)
    own = np.abs(find_directions(places, X, X[:, :1], K, h, 0.5).features[:, 0])
    assert own[3] < 0.5 * own[1]  # though it has nine times the variance


def test_scales_do_not_matter(rng):
    places, X, K, h = line(rng)
    scales = np.array([2.0, 0.5, 4.0, 0.25])
    one, two = (
        find_directions(places, X, X[:, :1], K, h, 0.5),
        find_directions(places, X / scales, X[:, :1], K, h, 0.5, scales),
    )
    np.testing.assert_allclose((X / scales) @ two.features, X @ one.features, atol=1e-9)


def test_no_axis_is_drawn_if_none_is_narrow_or_nothing_is_left_of_the_features(rng):
    places, X, K, h = line(rng)
    assert find_directions(X[:, :2], X, X[:, :1], K, h, 0.5) is None
    assert find_directions(places, X[:, :1], X[:, :1], K, h, 0.5) is None


def test_an_axis_that_says_much_about_y_stays(rng):
    places, X, K, h = line(rng)
    without = np.c_[places[:, 0], X[:, 1]]
    assert neighbours_say_less(np.c_[X[:, 0], X[:, 2]], without, X[:, [2]], K, h, 0.1)
    assert not neighbours_say_less(without, np.c_[X[:, 0], X[:, 2]], X[:, [2]], K, h, 0.1)
    assert not neighbours_say_less(without, without, X[:, [2]], K, h, 0.1)
    unknown = np.full((80, 1), np.nan)
    assert not neighbours_say_less(X[:, :2], without, unknown, K, h, 0.1)


@pytest.mark.parametrize("m", [None, 30])
def test_pictures_of_two_classes_and_of_a_number_are_planes_for_new_samples_too(m):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    A, a = make_friedman1(300, random_state=0, noise=3.0)
    for features, targets in ((X, y), (A, a)):
        model = SDR(n_prototypes=m, random_state=0).fit(features[::2], targets[::2])
        assert model.embedding_[:, 0].std() > 2.5 * model.embedding_[:, 1].std()  # the drawn axis is the second one
        for places in (model.embedding_, model.embedding_left_out_, model.transform(features[1::2])):
            narrow, wide = widths(places)
            assert narrow > 0.6 * WIDTH * wide
    given = SDR(n_prototypes=m, embedding_kernel="rq", random_state=0).fit(X[::2], y[::2])
    assert np.divide(*widths(given.embedding_)) < 0.6 * WIDTH


def test_prototypes_lie_where_their_samples_do(rng):
    X = rng.normal(size=(200, 5))
    model = SDR(n_prototypes=20, random_state=0).fit(X, X[:, 0] > 0)
    T = model.coupling_.toarray()
    used = model.prototype_weights_ > 0
    means = (T.T @ model.embedding_)[used] / T.sum(axis=0)[used, None]
    np.testing.assert_allclose(model.prototypes_[used], means, atol=1e-8)


def test_pictures_in_shards_are_planes(rng):
    X = rng.normal(size=(600, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverConvergenceWarning)
        fits = [
            SDR(n_prototypes=20, affinity="sparse", embedding_kernel=kernel, max_iter=5, random_state=0).fit(X, X[:, 0])
            for kernel in ("rq", "auto")
        ]
    solved, model = fits
    assert np.divide(*widths(solved.embedding_)) < 0.2
    for places in (model.embedding_, model.embedding_left_out_):
        narrow, wide = widths(places)
        assert narrow > 0.8 * WIDTH * wide


def test_three_dimensions(rng):
    X = rng.normal(size=(150, 6))
    model = SDR(3, random_state=0).fit(X, X[:, 0])
    assert widths(model.embedding_)[0] > 0.8 * WIDTH * widths(model.embedding_)[2]

"""The reduction before the GPs: metric, left-out embedding, drawn samples, and the choice of a classifier's map."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge

from distreduce import SDRGPClassifier
from distreduce.estimators import SDR
from distreduce.exceptions import SolverConvergenceWarning
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._reduce import (
    LEAST_MAP_REG,
    LENGTH_SCALES,
    RIDGES,
    _left_out_errors,
    choose_map,
    draw_rows,
    embed_left_out,
    largest_perplexity,
    relevance_metric,
)


@pytest.fixture(scope="module", params=[None, 12])
def reduced(request):
    """A reduction with and without prototypes, of samples among which some are equal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(36, 3))[np.r_[:36, :4]]
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    reduction = SDR.paper(2, n_prototypes=request.param, map_reg=0.05, length_scale=1.0, perplexity=8.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverConvergenceWarning)
        return reduction.fit(X, y), X


def ridge(reduction):
    """The reduction's map by scikit-learn; lengths are measured in the map's unit."""
    gamma = 0.5 / (reduction.map_.unit * reduction.map_.kernel.length_scale) ** 2
    return KernelRidge(alpha=reduction.map_reg, kernel="rbf", gamma=gamma)


def test_the_map_is_a_ridge_to_the_place_of_the_samples(reduced):
    reduction, X = reduced
    places = reduction.coupling_ @ reduction.prototypes_
    np.testing.assert_allclose(reduction.transform(X), ridge(reduction).fit(X, places).predict(X), atol=1e-8)


def test_left_out_is_the_map_fitted_without_the_sample_and_its_equals(reduced):
    reduction, X = reduced
    places = reduction.coupling_ @ reduction.prototypes_
    others = [(X != row).any(axis=1) for row in X]
    expected = [
        ridge(reduction).fit(X[rest], places[rest]).predict(row[None])[0] for row, rest in zip(X, others, strict=True)
    ]
    np.testing.assert_allclose(embed_left_out(reduction, X), expected, atol=1e-8)


def test_features_that_matter_to_one_target_matter():
    found = [Hyperparameters(np.array([1.0, 1e4]), 1.0, 0.1), Hyperparameters(np.array([1e4, 1.0]), 1.0, 0.3)]
    scales, ratio = relevance_metric(found)
    np.testing.assert_allclose([*scales, ratio], [np.sqrt(2), np.sqrt(2), 0.2], rtol=1e-6)


@pytest.mark.parametrize(("noise", "expected"), [(1e-6, LEAST_MAP_REG), (10.0, 1.0)])
def test_the_ridge_is_kept_within_bounds(noise, expected):
    assert relevance_metric([Hyperparameters(np.ones(2), 1.0, noise)])[1] == expected


@pytest.mark.parametrize("n", [2, 3, 4, 10, 1000])
def test_there_are_fewer_neighbours_than_samples(n):
    assert 1 < largest_perplexity(n) < n


def test_samples_are_drawn_once_each():
    rows = draw_rows(50, 20, np.random.RandomState(0))
    assert len(set(rows)) == 20 and max(rows) < 50


def test_all_samples_are_taken_if_there_are_few():
    np.testing.assert_array_equal(draw_rows(5, 20, np.random.RandomState(0)), np.arange(5))


def noisy(rng, n=240):
    """Three ordered classes of one feature among seven, with noise."""
    X = rng.normal(size=(n, 7))
    return X, np.digitize(X[:, 0] + 0.6 * rng.normal(size=n), [-0.5, 0.6])


def test_errors_are_those_of_ridge_regressions_without_the_sample(rng):
    X, labels = noisy(rng, 25)
    shares = np.eye(3)[labels] - np.eye(3)[labels].mean(axis=0)
    missed = []
    for i in range(25):
        others = np.delete(np.arange(25), i)
        ridge = KernelRidge(alpha=0.3, kernel="rbf", gamma=1 / (2 * 1.7**2)).fit(X[others], shares[others])
        missed.append(ridge.predict(X[[i]])[0] - shares[i])
    np.testing.assert_allclose(_left_out_errors(X, labels, [(1.7, 0.3)]), np.mean(np.square(missed)), rtol=1e-9)


def test_numbers_are_kept(rng):
    assert choose_map(*noisy(rng), 1.0, 0.3, 0.07) == (0.3, 0.07)


@pytest.mark.parametrize(("given", "place"), [((2.0, "auto"), 0), (("auto", 0.1), 1)])
def test_what_is_not_given_is_chosen(given, place, rng):
    found = choose_map(*noisy(rng), 2.6, *given)
    assert found[place] == given[place] and found[1 - place] in (RIDGES, LENGTH_SCALES)[place]


def test_labels_without_noise_keep_the_first_pair():
    X, y = load_digits(return_X_y=True)
    assert choose_map(X[:400] / 16, y[:400], 2.2, "auto", "auto") == (LENGTH_SCALES[0], RIDGES[0])


def test_equal_samples_are_left_out_together(rng):
    """Else a copy would tell the class of the other, and no noise would be seen."""
    X, labels = noisy(rng, 60)
    once = _left_out_errors(X, labels, [(1.0, 0.01)])
    twice = _left_out_errors(np.repeat(X, 2, axis=0), np.repeat(labels, 2), [(1.0, 0.02)])
    np.testing.assert_allclose(twice, once, rtol=1e-6)


def test_noisy_labels_are_predicted_better_than_by_the_map_of_images(rng):
    X, y = noisy(rng, 440)
    default, images = (
        SDRGPClassifier(2, random_state=0),
        SDRGPClassifier(2, length_scale_factor=0.5, map_reg=0.01, random_state=0),
    )
    scores = [model.fit(X[:240], y[:240]).score(X[240:], y[240:]) for model in (default, images)]
    assert scores[0] > scores[1] + 0.1


def test_the_old_name_of_the_factor_still_works(rng):
    with pytest.warns(FutureWarning, match="length_scale of .*give length_scale_factor=0.5"):
        model = SDRGPClassifier(length_scale=0.5)
    assert model.get_params()["length_scale_factor"] == 0.5

"""From (X, y) to the inputs of the GPs: the metric, the left-out embedding, the samples drawn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from distreduce.estimators import SDR
from distreduce.exceptions import SolverConvergenceWarning
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._reduce import LEAST_MAP_REG, draw_rows, embed_left_out, largest_perplexity, relevance_metric


@pytest.fixture(scope="module", params=[None, 12])
def reduced(request):
    """A reduction with and without prototypes, of samples among which some are equal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(36, 3))[np.r_[:36, :4]]
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    reduction = SDR(2, n_prototypes=request.param, map_reg=0.05, length_scale=1.0, perplexity=8.0, random_state=0)
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

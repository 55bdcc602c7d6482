"""SDRImputer against closed forms, brute force and what scikit-learn asks of a transformer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, make_blobs
from sklearn.impute import KNNImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from distreduce import SDRImputer
from distreduce.estimators._imputer import Mixture
from distreduce.exceptions import DataWarning, InvalidInputError, NumericalError, UnsavableModelError


def hide(X, share, rng):
    return np.where(rng.random(X.shape) < share, np.nan, X)


@parametrize_with_checks([SDRImputer()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def mixture(rng):
    A = rng.normal(size=(4, 4))
    return Mixture(np.array([0.2, 0.5, 0.3]), rng.normal(size=(3, 4)), A @ A.T + np.eye(4))


def test_one_prototype_is_the_regression_of_a_gaussian(rng):
    A = rng.normal(size=(5, 5))
    m, S = rng.normal(size=5), A @ A.T + 0.1 * np.eye(5)
    X = rng.normal(size=(20, 5))
    Y = hide(X, 0.4, rng)
    filled, std = Mixture(np.ones(1), m[None], S).impute(Y)
    for x, mean, deviation in zip(Y, filled, std, strict=True):
        o, u = ~np.isnan(x), np.isnan(x)
        slopes = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, u)]).T
        np.testing.assert_allclose(mean[u], m[u] + slopes @ (x[o] - m[o]), rtol=1e-9, atol=1e-9)
        rest = S[np.ix_(u, u)] - slopes @ S[np.ix_(o, u)]
        np.testing.assert_allclose(deviation[u], np.sqrt(rest.diagonal()), rtol=1e-7)
        np.testing.assert_array_equal(mean[o], x[o])
        assert (deviation[o] == 0).all()


def test_a_mixture_is_the_posterior_by_brute_force(mixture):
    x = np.array([0.3, np.nan, -0.8, np.nan])
    axis = np.linspace(-14, 14, 561)
    u, v = (part.ravel() for part in np.meshgrid(axis, axis))
    cells = np.stack([np.full_like(u, x[0]), u, np.full_like(u, x[2]), v], axis=1)
    density = sum(
        w * multivariate_normal(m, mixture.covariance).pdf(cells)
        for w, m in zip(mixture.weights, mixture.means, strict=True)
    )
    density /= density.sum()
    mean = density @ cells
    filled, std = mixture.impute(x[None])
    np.testing.assert_allclose(filled[0], mean, atol=1e-6)
    np.testing.assert_allclose(std[0], np.sqrt(density @ (cells - mean) ** 2), atol=1e-6)
    # The log density of the known cells is the integral over the others.
    (_, _, _, _, log_density), *_ = mixture.condition(np.stack([x, cells[0]]))
    o = [0, 2]
    marginal = sum(
        w * multivariate_normal(m[o], mixture.covariance[np.ix_(o, o)]).pdf(x[o])
        for w, m in zip(mixture.weights, mixture.means, strict=True)
    )
    np.testing.assert_allclose(log_density[0], np.log(marginal * 2 * np.pi), rtol=1e-9)


def test_em_raises_the_density_and_finds_the_gaussian_of_complete_rows(mixture, rng):
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    weights = rng.integers(1, 4, size=60).astype(float)
    (one, _), mean = Mixture(np.ones(1), np.zeros((1, 4)), np.eye(4)).improve(X, weights, 0.0), weights @ X
    np.testing.assert_allclose(one.means[0], mean / weights.sum())
    expected = np.cov(X.T, fweights=weights.astype(int), bias=True) + 1e-4 * np.eye(4)
    np.testing.assert_allclose(one.covariance, expected)
    Y, values = hide(X, 0.3, rng), []
    for _ in range(8):
        mixture, value = mixture.improve(Y, weights, 0.0)
        values.append(value)
    assert (np.diff(values) > -1e-3).all()
    assert values[-1] > values[0] + 0.1


def test_hidden_cells_choose_clusters_or_lines(rng):
    clusters = make_blobs(300, 6, centers=4, random_state=0)[0]
    line = np.outer(rng.normal(size=300), np.arange(1, 7)) + 0.1 * rng.normal(size=(300, 6))
    of_clusters, of_line = (SDRImputer(random_state=0).fit(hide(X, 0.3, rng)) for X in (clusters, line))
    assert len(of_clusters.prototypes_) > 1
    assert of_clusters.hidden_error_ < 1.3 * np.sqrt(np.mean(1 / clusters.var(axis=0)))  # the blobs' own spread is 1
    assert of_line.shrinkage_ < 0.1
    assert of_line.hidden_error_ < 0.1


def test_better_than_neighbours_where_half_is_missing_and_deviations_cover(rng):
    X = load_iris().data
    Y = hide(X, 0.5, rng)
    filled, std = SDRImputer(random_state=0).fit(Y).transform(Y, return_std=True)
    missing = np.isnan(Y)
    error, of_neighbours = (np.mean((F - X)[missing] ** 2) for F in (filled, KNNImputer().fit_transform(Y)))
    assert error < of_neighbours
    assert 0.8 < np.mean(np.abs(filled - X)[missing] < 1.645 * std[missing]) < 0.97


def test_empty_rows_and_columns_are_filled(rng):
    X = np.c_[hide(rng.normal(size=(40, 3)), 0.2, rng), np.full(40, np.nan), np.ones(40)]
    X[0] = np.nan
    with pytest.warns(DataWarning, match=r"columns 3;"):
        imputer = SDRImputer(random_state=0).fit(X)
    filled, std = imputer.transform(X, return_std=True)
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[0], imputer.prototype_weights_ @ imputer.prototypes_, atol=1e-9)
    assert (filled[:, 3] == 0).all()
    assert np.isinf(std[:, 3]).all()
    assert np.isfinite(np.delete(std, 3, axis=1)).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinity_is_refused_with_its_place(bad):
    X = np.eye(3)
    X[1, 2] = bad
    with pytest.raises(InvalidInputError, match="row 1, column 2"):
        SDRImputer().fit(X)


def test_frames_keep_names_and_the_result_its_units(rng):
    frame = pd.DataFrame(hide(load_iris().data, 0.2, rng), columns=list("abcd"))
    imputer = SDRImputer(random_state=0).set_output(transform="pandas").fit(frame)
    filled, std = imputer.transform(frame, return_std=True)
    assert list(filled.columns) == list(imputer.get_feature_names_out()) == list("abcd")
    units, origin = np.array([1e-200, 1.0, 1e3, 1e300]), np.array([0.0, 5.0, -1.0, 1e297])
    other = SDRImputer(random_state=0).fit(frame.to_numpy() * units + origin)
    moved, its_std = other.transform(frame.to_numpy() * units + origin, return_std=True)
    np.testing.assert_allclose((moved - origin) / units, filled, rtol=1e-5)
    np.testing.assert_allclose(its_std / units, std, rtol=1e-4)


def test_numbers_beyond_floats_are_a_named_error(rng):
    with pytest.raises(NumericalError, match="scale them"), np.errstate(all="ignore"):
        SDRImputer(random_state=0).fit(np.array([-1.7e308, 1.7e308])[rng.integers(0, 2, size=(50, 2))])


def test_more_prototypes_than_rows_of_any_kind(rng):
    X = hide(rng.integers(0, 2, size=(50, 3)).astype(float), 0.3, rng)
    imputer = SDRImputer(n_prototypes=500, shrinkage=1.0, random_state=0).fit(X)
    assert len(imputer.prototypes_) <= 27
    assert np.isfinite(imputer.transform(X)).all()


def test_a_saved_imputer_fills_in_the_same_bits_and_a_forged_one_is_refused(rng, tmp_path):
    frame = pd.DataFrame(hide(load_iris().data, 0.2, rng), columns=list("abcd"))
    imputer = SDRImputer(random_state=0).fit(frame)
    imputer.save(tmp_path / "imputer")
    again = SDRImputer.load(tmp_path / "imputer")
    assert {*vars(again)} == {*vars(imputer)} and again.get_params() == imputer.get_params()
    for one, other in zip(*(model.transform(frame, return_std=True) for model in (imputer, again)), strict=True):
        np.testing.assert_array_equal(one, other)
    imputer.covariance_ = -imputer.covariance_
    with pytest.raises(UnsavableModelError, match="positive eigenvalues"):
        imputer.save(tmp_path / "forged")

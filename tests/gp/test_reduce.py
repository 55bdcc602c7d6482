"""The reduction before the experts: scales of features, drawn samples, old names of parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from distreduce import SDRGPClassifier, SDRGPRegressor
from distreduce.estimators._validate import largest_perplexity

pytestmark = pytest.mark.usefixtures("light")
QUICK = SDRGPRegressor(experts=[], gp_steps=3, random_state=0)


@pytest.mark.parametrize("n", [2, 3, 4, 10, 1000])
def test_there_are_fewer_neighbours_than_samples(n):
    assert 1 < largest_perplexity(n) < n


def grey(rng, n=120):
    """Pixels: four with contrast that tell y, and 40 nearly constant ones that are noise."""
    X = np.c_[rng.normal(size=(n, 4)), 0.01 * rng.normal(size=(n, 40))]
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("units", [1.0, 2.0 ** np.arange(44.0)], ids=["common", "each"])
def test_features_are_scaled_as_left_out_targets_ask_for(rng, units):
    """Nearly constant pixels stay small; features whose units differ by powers of two cannot keep them."""
    X, y = grey(rng)
    scale = clone(QUICK).fit(X * units, y).input_scale_
    expected = np.full(44, np.sqrt((X * units).var(axis=0).mean())) if np.isscalar(units) else (X * units).std(axis=0)
    np.testing.assert_allclose(scale, expected, rtol=1e-9)


@pytest.mark.parametrize(("how", "expected"), [("standard", lambda X: X.std(axis=0)), ("none", lambda X: np.ones(44))])
def test_the_scale_that_is_asked_for_is_used(rng, how, expected):
    X, y = grey(rng)
    model = clone(QUICK).set_params(feature_scaling=how).fit(X, y)
    np.testing.assert_allclose(model.input_scale_, expected(X), rtol=1e-9)


def test_what_the_reduction_places_is_what_transform_returns(rng):
    X, y = grey(rng)
    model = clone(QUICK).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), model.reduction_.transform(X / model.input_scale_))


def test_novelty_is_small_for_unlike_samples_only(rng):
    X = rng.normal(size=(240, 3))
    model = clone(QUICK).fit(X[:120] * [1.0, 1e3, 1e-3], X[:120, 0])
    alike, unlike = (model.novelty(new * [1.0, 1e3, 1e-3]) for new in (X[120:], X[120:] + 9.0))
    assert unlike.max() < 0.02 and alike.mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("factor", "now"), [(1.0, "median"), (0.5, "auto")])
def test_the_old_name_of_the_factor_still_works(factor, now):
    with pytest.warns(FutureWarning, match="length_scale_factor of .*give length_scale="):
        model = SDRGPClassifier(length_scale_factor=factor)
    assert model.get_params()["length_scale"] == now


def test_classes_do_not_depend_on_the_units_of_the_features(rng):
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + X[:, 1] > 0
    model = SDRGPClassifier(2, experts=[], gp_steps=5, feature_scaling="standard", random_state=0)
    raw = clone(model).fit(X * [1e-3, 1.0, 1e4], y).predict_proba(X * [1e-3, 1.0, 1e4])
    np.testing.assert_allclose(raw, clone(model).fit(X, y).predict_proba(X), atol=1e-6)

"""What the GP regressors predict: moments, intervals, covariances, several targets, units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from light_predictors import light_predictors
from scipy.stats import cauchy, norm, t
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from distreduce.exceptions import InvalidInputError
from distreduce.gp import GPRegressor, SDRGPRegressor, _estimator

pytestmark = pytest.mark.usefixtures("light")
X, Y = make_friedman1(110, n_features=6, noise=1.0, random_state=0)
Y2 = np.c_[Y, np.cos(3 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=110)]
TRAIN, TEST = slice(0, 80), slice(80, None)
MODELS = {
    "plain": GPRegressor(),
    "default": SDRGPRegressor(experts=["linear"], random_state=0),
    "paper": SDRGPRegressor.paper(random_state=0),
    "prototypes": SDRGPRegressor(n_prototypes=20, experts=[], gp_steps=10, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """One target."""
    with light_predictors():
        return clone(MODELS[request.param]).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module", params=MODELS)
def two_targets(request):
    with light_predictors():
        return clone(MODELS[request.param]).fit(X[TRAIN], Y2[TRAIN])


def test_predictions_explain_the_target(model):
    assert model.score(X[TEST], Y[TEST]) > 0.6


def test_prediction_is_the_same_with_and_without_std(model):
    np.testing.assert_array_equal(model.predict(X[TEST]), model.predict(X[TEST], return_std=True)[0])


def test_std_includes_the_noise(model):
    errors = model.predict(X[TRAIN], return_std=True)[1]
    assert 0.3 < np.median(errors) < 3.0  # the noise has standard deviation 1


@pytest.mark.parametrize("kind", ["counts", "shares", "both"])
def test_predictions_stay_in_the_range_of_counts_and_shares(rng, kind):
    x = rng.normal(size=(400, 2))
    counts, shares = rng.poisson(np.exp(x[:, 0] - 1.0)), rng.beta(np.exp(2 * x[:, 0]), 1.0)
    y = {"counts": counts, "shares": shares, "both": np.c_[counts, shares, x[:, 0]]}[kind]
    model = SDRGPRegressor(experts=["linear"], gp_steps=5, random_state=0).fit(x[:80], y[:80])
    new, low = x[80:], [0.0, 0.0, -np.inf] if kind == "both" else 0.0
    high = {"counts": np.inf, "shares": 1.0, "both": [np.inf, 1.0, np.inf]}[kind]
    said = [model.predict(new), *np.moveaxis(model.predict_quantiles(new), -1, 0)]
    said += [*np.moveaxis(model.predict_interval(new, method="conformal"), -1, 0)]
    for numbers in said:
        assert (numbers >= low).all() and (numbers <= high).all()
    # Limits only help: a target in the range comes nearer to what is drawn into it.
    free = clone(model).fit(x[:80], y[:80])
    free.target_scale_ = replace(free.target_scale_, ranges=0 * free.target_scale_.ranges)
    before, after = (each.predict_quantiles(new)[..., 0] for each in (free, model))
    assert (before < low).any()
    held = ((y[80:] >= each) for each in (before, after))
    assert np.array_equal(*held)  # no target leaves its interval


@pytest.mark.parametrize("name", ["plain", "paper"])
def test_a_plain_gp_and_the_papers_recipe_have_no_limits(name):
    model = clone(MODELS[name]).fit(X[TRAIN], Y[TRAIN] - Y[TRAIN].min())
    assert (model.target_scale_.ranges == 0).all()


def test_quantiles_are_those_of_the_tails(model):
    """Widened by the ratio of Student's t to the Gaussian where the scale was estimated from left-out errors."""
    mean, std = (part[:, None] for part in model.predict(X[TEST], return_std=True))
    levels, tails = np.array([0.05, 0.3, 0.95]), model.stacks_[0].tails
    wider = t.ppf(levels, len(X[TRAIN]) - 1) / norm.ppf(levels) if model.stacks_[0].calibration else 1.0
    at = (model.predict_quantiles(X[TEST], levels) - mean) / std / wider
    below = sum(share * norm.cdf(at, centre, np.sqrt(variance)) for share, centre, variance in tails.parts)
    np.testing.assert_allclose(below, np.tile(levels, (len(at), 1)), rtol=1e-9)


def test_intervals_of_the_model_are_its_quantiles(model):
    found = model.predict_interval(X[TEST], 0.8)
    np.testing.assert_allclose(found, model.predict_quantiles(X[TEST], (0.1, 0.9)), rtol=1e-12)


def test_log_density_is_the_slope_of_the_quantiles(model):
    """dF/dy = p(y) at a quantile; without the factor of Student's t, but with a share for errors unlike all others."""
    tails = model.stacks_[0].tails
    mean, std = model.predict(X[TEST], return_std=True)
    y = mean + 0.7 * std
    errors = 0.7 + np.array([-1e-5, 1e-5])
    below = sum(share * norm.cdf(errors, centre, np.sqrt(variance)) for share, centre, variance in tails.parts)
    unseen = 1 / (tails.freedom + 2) if tails.freedom else 0.0
    below = (1 - unseen) * below + unseen * cauchy.cdf(errors)
    expected = np.log((below[1] - below[0]) / 2e-5 / std)
    np.testing.assert_allclose(model.log_density(X[TEST], y), expected, atol=1e-4)


def test_quantiles_of_a_plain_gp_are_those_of_the_normal_distribution():
    model = GPRegressor().fit(X[TRAIN], Y[TRAIN])
    mean, std = model.predict(X[TEST], return_std=True)
    expected = norm(mean[:, None], std[:, None]).ppf((0.05, 0.3, 0.5))
    np.testing.assert_allclose(model.predict_quantiles(X[TEST], (0.05, 0.3, 0.5)), expected, rtol=1e-10)


def test_covariance_has_the_variances_on_its_diagonal(model):
    _, covariance = model.predict(X[TEST], return_cov=True)
    np.testing.assert_allclose(covariance.diagonal(), model.predict(X[TEST], return_std=True)[1] ** 2, rtol=1e-8)


def test_covariance_is_symmetric_and_positive(model):
    _, covariance = model.predict(X[TEST], return_cov=True)
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > 0


def test_a_sample_is_predicted_alone_as_in_a_batch(model):
    alone = np.r_[[model.predict(row[None])[0] for row in X[TEST][:4]]]
    np.testing.assert_allclose(alone, model.predict(X[TEST])[:4], rtol=1e-8)


def test_chunks_change_nothing(model, monkeypatch):
    whole = model.predict(X[TEST], return_std=True)
    monkeypatch.setattr(_estimator, "CHUNK", 7)
    np.testing.assert_allclose(model.predict(X[TEST], return_std=True), whole, rtol=1e-8)


def test_shapes_of_several_targets(two_targets):
    mean, std = two_targets.predict(X[TEST], return_std=True)
    covariance = two_targets.predict(X[TEST], return_cov=True)[1]
    quantiles = two_targets.predict_quantiles(X[TEST])
    assert (mean.shape, std.shape, covariance.shape, quantiles.shape) == ((30, 2), (30, 2), (30, 30, 2), (30, 2, 3))


def test_each_of_several_targets_has_its_covariance(two_targets):
    _, std = two_targets.predict(X[TEST], return_std=True)
    _, covariance = two_targets.predict(X[TEST], return_cov=True)
    np.testing.assert_allclose(np.einsum("iit->it", covariance), std**2, rtol=1e-8)


def test_several_targets_are_all_predicted(two_targets):
    error = ((two_targets.predict(X[TEST]) - Y2[TEST]) ** 2).mean(axis=0)
    assert (error < 0.5 * Y2[TEST].var(axis=0)).all()


def test_targets_of_plain_gps_do_not_see_each_other():
    both = GPRegressor().fit(X[TRAIN], Y2[TRAIN]).predict(X[TEST])
    alone = [GPRegressor().fit(X[TRAIN], Y2[TRAIN, t]).predict(X[TEST]) for t in range(2)]
    np.testing.assert_allclose(both, np.transpose(alone), rtol=1e-6)


def test_a_table_of_one_column_stays_a_table():
    assert GPRegressor().fit(X[TRAIN], Y[TRAIN, None]).predict(X[TEST]).shape == (30, 1)


@pytest.mark.parametrize("name", MODELS)
def test_units_of_y_are_those_of_the_predictions(name):
    """To what rounding changes where the trainings end, each within 0.1 of the same log likelihood."""
    here = clone(MODELS[name]).fit(X[TRAIN], Y[TRAIN]).predict(X[TEST], return_std=True)
    there = clone(MODELS[name]).fit(X[TRAIN], 1024 * Y[TRAIN] - 1e5).predict(X[TEST], return_std=True)
    np.testing.assert_allclose(there, (1024 * here[0] - 1e5, 1024 * here[1]), rtol=0.06)


@pytest.mark.parametrize("name", ["plain", "default", "prototypes"])
def test_units_of_x_do_not_matter(name):
    """Powers of two, so that no digit changes."""
    units, model = 2.0 ** np.array([-30, -3, 0, 4, 20, 60]), clone(MODELS[name])
    if name != "plain":
        model.set_params(feature_scaling="standard")  # "auto" may find one unit for all features
    here = clone(model).fit(X[TRAIN], Y[TRAIN]).predict(X[TEST], return_std=True)
    there = clone(model).fit(X[TRAIN] * units, Y[TRAIN]).predict(X[TEST] * units, return_std=True)
    np.testing.assert_allclose(there, here, rtol=1e-6)


@pytest.mark.parametrize("name", ["plain", "default"])
def test_the_origin_of_x_does_not_matter(name):
    grid = np.round(X * 1024) / 1024  # so that no digit is lost
    here = clone(MODELS[name]).fit(grid[TRAIN], Y[TRAIN]).predict(grid[TEST])
    there = clone(MODELS[name]).fit(grid[TRAIN] + 2.0**20, Y[TRAIN]).predict(grid[TEST] + 2.0**20)
    np.testing.assert_allclose(there, here, atol=0.02 * Y.std())


@pytest.mark.parametrize("name", ["plain", "default"])
def test_far_from_the_samples_there_is_less_certainty(name):
    model = clone(MODELS[name]).fit(X[TRAIN], Y[TRAIN])
    _, far = model.predict(np.full((1, 6), 1e6), return_std=True)
    assert far > model.predict(X[TEST], return_std=True)[1].max()


@pytest.mark.parametrize("quantiles", [[0.0, 0.5], [1.5], [], [[0.5]], [np.nan], ["a"]])
def test_quantiles_outside_zero_and_one_are_refused(quantiles):
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        GPRegressor().fit(X[:20], Y[:20]).predict_quantiles(X, quantiles)


def test_std_and_covariance_at_once_are_refused():
    with pytest.raises(InvalidInputError, match="At most one"):
        GPRegressor().fit(X[:20], Y[:20]).predict(X, return_std=True, return_cov=True)

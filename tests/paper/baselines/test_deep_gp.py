"""The deep GP: scikit-learn's checks, units, GPyTorch as oracle, torch's state, the paper's row."""

from __future__ import annotations

import pickle  # noqa: TID251  joblib and multiprocessing pickle estimators
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from some_checks import ABOUT_A_BASELINE, parametrize_with_some_checks

import data_sets
from distreduce.exceptions import NumericalError
from distreduce_paper.baselines import _torch_training
from distreduce_paper.baselines.deep_gp import DeepGPRegressor

SMALL: dict[str, Any] = {"n_inducing": 10, "n_likelihood_samples": 4, "n_epochs": 10, "random_state": 0}


@parametrize_with_some_checks(
    [DeepGPRegressor(n_inducing=10, n_likelihood_samples=4, n_epochs=30)],
    (*ABOUT_A_BASELINE, "check_regressors_train"),
)
def test_scikit_learn_accepts_the_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def regression() -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(50, random_state=0)


@pytest.fixture
def fitted(regression: Any) -> DeepGPRegressor:
    X, y = regression
    return DeepGPRegressor(**SMALL).fit(X, np.c_[y, -(y**2)])


def gpytorchs_prediction(model: DeepGPRegressor, X: np.ndarray, n_draws: int) -> gpytorch.distributions.Distribution:
    """GPyTorch's own prediction, which draws the hidden layer afresh for every sample."""
    with torch.random.fork_rng(devices=[]), torch.no_grad(), gpytorch.settings.num_likelihood_samples(n_draws):
        torch.manual_seed(0)
        return model.model_.likelihood(model.model_(torch.tensor(X)))


def test_mean_is_that_of_gpytorchs_own_draws(fitted: DeepGPRegressor, regression: Any) -> None:
    X, y = regression
    fitted._draws = torch.randn(2000, 1, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    means = gpytorchs_prediction(fitted, X[:5], 2000).mean
    expected = means.mean(0).numpy() * np.c_[y, -(y**2)].std(0) + np.c_[y, -(y**2)].mean(0)
    error = 5 * means.std(0).numpy() / np.sqrt(2000) * np.c_[y, -(y**2)].std(0)
    assert (np.abs(fitted.predict(X[:5]) - expected) < error).all()


def test_std_is_that_of_gpytorchs_own_draws(fitted: DeepGPRegressor, regression: Any) -> None:
    X, y = regression
    fitted._draws = torch.randn(2000, 1, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    predicted = gpytorchs_prediction(fitted, X[:5], 2000)
    draws = predicted.mean + predicted.stddev * torch.randn(2000, 5, 2, generator=torch.Generator().manual_seed(2))
    expected = draws.std(0).numpy() * np.c_[y, -(y**2)].std(0)
    np.testing.assert_allclose(fitted.predict(X[:5], return_std=True)[1], expected, rtol=0.08)


def test_units_of_the_target_do_not_matter(regression: Any) -> None:
    X, y = regression
    mean, std = DeepGPRegressor(**SMALL).fit(X, y).predict(X, return_std=True)
    other = DeepGPRegressor(**SMALL).fit(X, 1000 * y - 5).predict(X, return_std=True)
    np.testing.assert_allclose(other, (1000 * mean - 5, 1000 * std), rtol=1e-6)


def test_training_raises_the_evidence(regression: Any) -> None:
    curve = DeepGPRegressor(**SMALL).fit(*regression).loss_curve_
    assert curve[-1] < curve[0]


def test_chunks_do_not_change_predictions(
    fitted: DeepGPRegressor, regression: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fitted.predict(regression[0], return_std=True)
    monkeypatch.setattr(_torch_training, "CHUNK", 7)
    np.testing.assert_allclose(fitted.predict(regression[0], return_std=True), whole, rtol=1e-9)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_prediction_has_the_shape_of_a_table_of_targets(regression: Any, n_targets: int) -> None:
    X, y = regression
    assert DeepGPRegressor(**SMALL).fit(X, np.c_[y, y][:, :n_targets]).predict(X[:4]).shape == (4, n_targets)


def test_fewer_samples_than_inducing_points_make_fewer(regression: Any) -> None:
    X, y = regression
    model = DeepGPRegressor(n_epochs=1, n_likelihood_samples=2, random_state=0).fit(X, y)
    assert model.model_.output.variational_strategy.inducing_points.shape == (50, 2)


def test_global_torch_state_is_left_alone(regression: Any) -> None:
    before = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    DeepGPRegressor(**SMALL).fit(*regression).predict(regression[0])
    after = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    assert torch.equal(before[0], after[0]) and before[1:] == after[1:]


def test_seed_decides_the_result_whatever_torchs_own_seed(regression: Any) -> None:
    first = DeepGPRegressor(**SMALL).fit(*regression)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        second = DeepGPRegressor(**SMALL).fit(*regression)
    assert first.loss_curve_ == second.loss_curve_


def test_predictions_survive_a_copy_after_predicting(fitted: DeepGPRegressor, regression: Any) -> None:
    expected = fitted.predict(regression[0])
    copied = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(copied.predict(regression[0]), expected)


def test_divergence_is_a_named_error(regression: Any) -> None:
    X, y = regression
    with pytest.raises(NumericalError, match="lower learning_rate"):
        DeepGPRegressor(**SMALL).fit(1e300 * X, y)


@pytest.mark.data
@pytest.mark.slow
def test_boston_is_within_a_standard_deviation_of_the_paper(data_dir: Path) -> None:
    X, y = data_sets.boston(data_dir)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    mean, std = DeepGPRegressor(random_state=0).fit(X_train, y_train).predict(X_test, return_std=True)
    density = norm.logpdf(y_test, mean, std).mean()
    assert density > -1.18 - 0.09 and ((y_test - mean) ** 2).mean() < 0.46 + 0.18

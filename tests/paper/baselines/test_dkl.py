"""Deep kernel learning: scikit-learn's checks, units, GPyTorch as oracle, torch's state, the paper's rows."""

from __future__ import annotations

import pickle  # noqa: TID251  joblib and multiprocessing pickle estimators
import sys
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_friedman1
from sklearn.model_selection import train_test_split
from some_checks import ABOUT_A_BASELINE, parametrize_with_some_checks

import data_sets
from distreduce.exceptions import InvalidInputError, MissingDependencyError, NumericalError
from distreduce_paper import baselines
from distreduce_paper.baselines import _torch_training
from distreduce_paper.baselines.dkl import DKLClassifier, DKLRegressor

SMALL: dict[str, Any] = {"hidden_layer_sizes": (30, 10), "random_state": 0}


@parametrize_with_some_checks(
    [
        DKLRegressor(hidden_layer_sizes=(50, 20), n_epochs=40, pretrained=True, pretraining_epochs=10),
        DKLClassifier(hidden_layer_sizes=(50, 20), n_epochs=20, pretrained=True, pretraining_epochs=20),
    ],
    (*ABOUT_A_BASELINE, "check_regressors_train", "check_classifiers_train"),
)
def test_scikit_learn_accepts_the_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def regression() -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(60, random_state=0)


@pytest.fixture
def classification() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(90, centers=3, cluster_std=2.0, random_state=0)


def reference_prediction(model: DKLRegressor, X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> Any:
    """The definition, dense: cov((i, s), (j, t)) = B_st k(z_i, z_j) + [i = j, s = t] noise_s."""
    Z, Z_new = (model.network_.features(torch.tensor(part)).numpy() for part in (X, new))
    gp, n_targets = model.gp_, Y.shape[1]
    scaled = [part / gp.covar_module.data_covar_module.lengthscale.numpy() for part in (Z, Z_new)]
    K, cross = (np.exp(-0.5 * ((a[:, None] - scaled[0]) ** 2).sum(-1)) for a in scaled)
    B = gp.covar_module.task_covar_module.covar_matrix.to_dense().numpy()
    noise = gp.likelihood.task_noises.numpy()
    prior = np.array([mean.constant.item() for mean in gp.mean_module.base_means])
    standard = (Y - Y.mean(0)) / Y.std(0) - prior
    covariance = np.kron(K, B) + np.kron(np.eye(len(X)), np.diag(noise))
    cross = np.kron(cross, B)
    mean = (cross @ np.linalg.solve(covariance, standard.ravel())).reshape(-1, n_targets) + prior
    explained = (cross * np.linalg.solve(covariance, cross.T).T).sum(1).reshape(-1, n_targets)
    return mean * Y.std(0) + Y.mean(0), np.sqrt(np.diag(B) - explained + noise) * Y.std(0)


@pytest.mark.parametrize("which", [0, 1], ids=["mean", "std"])
def test_several_targets_make_the_multitask_gp_of_the_definition(regression: Any, which: int) -> None:
    X, y = regression
    Y = np.c_[y, 100 - y**2]
    model = DKLRegressor(**SMALL).fit(X[:40], Y[:40])
    expected = reference_prediction(model, X[:40], Y[:40], X[40:])
    np.testing.assert_allclose(model.predict(X[40:], return_std=True)[which], expected[which], rtol=1e-7)


def test_loss_equals_gpytorchs_marginal_likelihood(regression: Any) -> None:
    X, y = regression
    model = DKLRegressor(n_epochs=1, learning_rate=1e-12, network_learning_rate=1e-12, **SMALL).fit(X, y)
    model.gp_.train()
    exact = gpytorch.mlls.ExactMarginalLogLikelihood(model.gp_.likelihood, model.gp_)
    expected = -exact(model.gp_(*model.gp_.train_inputs), model.gp_.train_targets).item()
    assert model.loss_curve_[0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("pretrained", [False, True])
def test_units_of_the_target_do_not_matter(regression: Any, pretrained: bool) -> None:
    X, y = regression
    model = DKLRegressor(pretrained=pretrained, pretraining_epochs=5, **SMALL)
    mean, std = model.fit(X, y).predict(X, return_std=True)
    other = model.fit(X, 1000 * y - 5).predict(X, return_std=True)
    np.testing.assert_allclose(other, (1000 * mean - 5, 1000 * std), rtol=1e-6)


def test_constant_target_is_predicted() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(DKLRegressor(**SMALL).fit(X, np.full(20, 7.0)).predict(X), 7.0, atol=1e-8)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_prediction_has_the_shape_of_a_table_of_targets(regression: Any, n_targets: int) -> None:
    X, y = regression
    assert DKLRegressor(**SMALL).fit(X, np.c_[y, y][:, :n_targets]).predict(X[:4]).shape == (4, n_targets)


def test_chunks_do_not_change_predictions(regression: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = regression
    model = DKLRegressor(**SMALL).fit(X, y)
    whole = model.predict(X, return_std=True)
    monkeypatch.setattr(_torch_training, "CHUNK", 7)
    np.testing.assert_allclose(model.predict(X, return_std=True), whole, rtol=1e-10)


def test_chunks_do_not_change_probabilities(classification: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = classification
    model = DKLClassifier(**SMALL).fit(X, y)
    whole = model.predict_proba(X)
    monkeypatch.setattr(_torch_training, "CHUNK", 7)
    np.testing.assert_allclose(model.predict_proba(X), whole, rtol=1e-10)


@pytest.mark.parametrize("estimator", [DKLRegressor, DKLClassifier])
def test_global_torch_state_is_left_alone(estimator: Any, classification: Any) -> None:
    before = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    estimator(pretrained=True, pretraining_epochs=2, **SMALL).fit(*classification).predict(classification[0])
    after = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    assert torch.equal(before[0], after[0]) and before[1:] == after[1:]


@pytest.mark.parametrize("estimator", [DKLRegressor, DKLClassifier])
def test_seed_decides_the_result_whatever_torchs_own_seed(estimator: Any, classification: Any) -> None:
    X, y = classification
    first = estimator(**SMALL).fit(X, y)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(99)
        second = estimator(**SMALL).fit(X, y)
    assert first.loss_curve_ == second.loss_curve_


def test_another_seed_starts_elsewhere(regression: Any) -> None:
    first = DKLRegressor(**SMALL)
    second = clone(first).set_params(random_state=1)
    assert first.fit(*regression).loss_curve_[0] != second.fit(*regression).loss_curve_[0]


def test_pretraining_lowers_the_first_loss(regression: Any) -> None:
    plain = DKLRegressor(**SMALL).fit(*regression)
    pretrained = DKLRegressor(pretrained=True, pretraining_learning_rate=0.01, **SMALL).fit(*regression)
    assert pretrained.loss_curve_[0] < plain.loss_curve_[0]


@pytest.mark.parametrize(("pretrained", "rate"), [(False, 0.1), (True, 0.01)])
def test_automatic_learning_rate_is_the_papers(regression: Any, pretrained: bool, rate: float) -> None:
    settings = {"pretrained": pretrained, "pretraining_epochs": 2, **SMALL}
    automatic = DKLRegressor(**settings).fit(*regression)
    assert automatic.loss_curve_ == DKLRegressor(learning_rate=rate, **settings).fit(*regression).loss_curve_


def test_predictions_survive_a_copy_after_predicting(regression: Any) -> None:
    X, y = regression
    model = DKLRegressor(**SMALL).fit(X, y)
    expected = model.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)  # noqa: S301


def test_images_pass_convolutions() -> None:
    X = np.random.default_rng(0).random((12, 256))
    model = DKLClassifier(n_epochs=1, **SMALL).fit(X, np.arange(12) % 2)
    assert any(isinstance(layer, torch.nn.Conv2d) for layer in model.network_.modules())


def test_wrong_image_shape_is_refused(classification: Any) -> None:
    with pytest.raises(InvalidInputError, match="image_shape"):
        DKLClassifier(image_shape=(4, 4)).fit(*classification)


def test_divergence_is_a_named_error(regression: Any) -> None:
    X, y = regression
    with pytest.raises(NumericalError, match="lower learning_rate"):
        DKLRegressor(pretrained=True, **SMALL).fit(1e300 * X, y)


def test_features_of_any_magnitude_train(regression: Any) -> None:
    X, y = regression
    assert np.isfinite(DKLRegressor(**SMALL).fit(1e100 * X, y).predict(X)).all()


# The paper's mean less one of its standard deviations (MSE: plus one), held by the mean over two splits of Boston and
# by one of Energy, which has more rows.
PAPER = {
    (False, "boston"): (-0.42 - 0.21, 0.13 + 0.07),
    (True, "boston"): (-0.76 - 0.05, 0.11 + 0.07),
}


def density_and_error(X: np.ndarray, y: np.ndarray, pretrained: bool, seed: int) -> tuple[float, float]:
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    model = DKLRegressor(pretrained=pretrained, random_state=seed).fit(X_train, y_train)
    mean, std = model.predict(X_test, return_std=True)
    return norm.logpdf(y_test, mean, std).mean(), ((y_test - mean) ** 2).mean()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("pretrained", "name"), PAPER)
def test_regression_is_within_a_standard_deviation_of_the_paper(data_dir: Path, pretrained: bool, name: str) -> None:
    X, y = getattr(data_sets, name)(data_dir)
    density, error = np.mean([density_and_error(X, y, pretrained, seed) for seed in range(2)], axis=0)
    lowest, highest = PAPER[pretrained, name]
    assert density >= lowest and error <= highest


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "distreduce_paper.baselines.dkl")
    with pytest.raises(MissingDependencyError, match=r"DKLRegressor needs torch: pip install 'distreduce\[gp\]'"):
        baselines.DKLRegressor  # noqa: B018

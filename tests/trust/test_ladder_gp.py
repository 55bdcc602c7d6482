"""The ladder of the GP estimators: a reduction that was rolled back serves them, and their own errors carry it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from trust.faults import CLASSES, NUMBERS, Faulty, X, fails, nan, refuses

from distreduce import SDR, SDRGPClassifier, SDRGPRegressor
from distreduce._utils import linalg
from distreduce.exceptions import NumericalError, RolledBackWarning
from distreduce.gp import GPClassifier, GPRegressor, _classification
from distreduce.gp import _dirichlet as dirichlet
from distreduce.gp import _exact as exact
from distreduce.gp._class_stack import ClassStack
from distreduce.gp._reduce import ReducingGP
from distreduce.gp._stack import Stack
from distreduce.solver.dense import DenseOracle

SMALL: dict[str, Any] = {"perplexity": 10.0, "experts": ["linear"], "gp_steps": 10, "random_state": 0, "n_jobs": 1}
MODELS: dict[str, tuple[Any, Any]] = {
    "SDRGPRegressor": (SDRGPRegressor(**SMALL), NUMBERS),
    "SDRGPRegressor, prototypes": (SDRGPRegressor(n_prototypes=8, **SMALL), NUMBERS),
    "SDRGPClassifier": (SDRGPClassifier(2, **SMALL), CLASSES),
    "SDRGPClassifier, prototypes": (SDRGPClassifier(2, n_prototypes=8, **SMALL), CLASSES),
}
PLAIN = {"GPRegressor": (GPRegressor(gp_steps=10), NUMBERS), "GPClassifier": (GPClassifier(gp_steps=10), CLASSES)}
KINDS = pytest.mark.parametrize("kind", MODELS)
LINALG = fails(np.linalg.LinAlgError("injected"))


def fit(kind: str) -> Any:
    model, y = {**MODELS, **PLAIN}[kind]
    return clone(model).fit(X, y)


def said(model: Any) -> np.ndarray:
    new = X[:20] + 0.25
    return np.asarray(
        model.predict_proba(new) if hasattr(model, "predict_proba") else model.predict(new, return_std=True)
    )


@pytest.mark.parametrize("kind", [kind for kind in MODELS if "prototypes" in kind])
@pytest.mark.parametrize("fault", [nan, LINALG], ids=["nan", "raises"])
def test_a_reduction_that_was_rolled_back_predicts(monkeypatch, kind, fault):
    monkeypatch.setattr(DenseOracle, "couple", Faulty(DenseOracle.couple, fault, 1))
    with pytest.warns(RolledBackWarning, match="Outer iteration 1"):
        model = fit(kind)
    assert np.isfinite(said(model)).all()


@pytest.mark.parametrize("kind", [*MODELS, *PLAIN])
def test_covariances_that_need_jitter_predict(monkeypatch, kind):
    faulty = Faulty(linalg.factorise_in_place, refuses, 1)

    def factorise(*args):  # the fault is in the covariances of the GPs only, not in those of the map
        with monkeypatch.context() as patch:
            patch.setattr(linalg, "factorise_in_place", faulty)
            return linalg.jittered_cholesky(*args)

    monkeypatch.setattr(exact, "jittered_cholesky", factorise)
    assert np.isfinite(said(fit(kind))).all() and faulty.calls >= 2


def test_a_likelihood_that_cannot_be_factorised_in_mid_training_leaves_the_best_point(monkeypatch):
    faulty = Faulty(dirichlet.covariance_gradient, fails(NumericalError("injected")), 6, np.inf)
    monkeypatch.setattr(dirichlet, "covariance_gradient", faulty)
    assert np.isfinite(said(fit("GPClassifier"))).all() and faulty.calls > 6


@KINDS
def test_left_out_embeddings_get_jitter(monkeypatch, kind):
    """The second factorisation is that of the leave-one-out map."""
    monkeypatch.setattr(linalg, "factorise_in_place", Faulty(linalg.factorise_in_place, refuses, 2))
    with pytest.warns(UserWarning, match="1e-10"):
        assert np.isfinite(said(fit(kind))).all()


@KINDS
def test_a_covariance_that_cannot_be_factorised_is_an_error_that_carries_the_reduction(monkeypatch, kind):
    monkeypatch.setattr(ReducingGP, "_cross_fit", lambda *_: LINALG(None))
    with pytest.raises(NumericalError) as caught:
        fit(kind)
    assert isinstance(caught.value.best, SDR) and np.isfinite(caught.value.best.transform(X)).all()


@pytest.mark.parametrize("kind", [*MODELS, *PLAIN])
def test_a_fitted_attribute_that_is_not_finite_is_an_error_and_leaves_nothing(monkeypatch, kind):
    for owner, name, part in (
        (Stack, "of", "variance_scale"),
        (Stack, "of_exact", "variance_scale"),
        (ClassStack, "of", "sharpness"),
    ):
        monkeypatch.setattr(owner, name, _with_nan(getattr(owner, name), part))
    monkeypatch.setattr(_classification, "fit_means", Faulty(_classification.fit_means, _nan_means, 1))
    model, y = {**MODELS, **PLAIN}[kind]
    model = clone(model)
    with pytest.raises(NumericalError, match="not finite"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def _with_nan(real: Any, part: str) -> Any:
    """The same function, whose result has NaN for one of its parts."""
    return lambda *args, **options: replace(real(*args, **options), **{part: np.nan})


def _nan_means(found: Any) -> Any:
    posterior, means = found
    return posterior, nan(means)

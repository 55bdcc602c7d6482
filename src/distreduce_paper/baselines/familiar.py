"""Boosting libraries with densities of their own, as rows of the tables for those who have installed them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from distreduce.exceptions import MissingDependencyError
from distreduce_paper.problems import Array

if TYPE_CHECKING:
    from typing_extensions import Self


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(f"This row needs {name}: pip install {name}.") from error


class _Seeded(BaseEstimator):
    """An estimator that imports its library when it is fitted."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Array, y: Array) -> Self:
        """Fit to samples and targets."""
        self.model_ = self._make().fit(X, y)
        return self

    def _make(self) -> Any:
        raise NotImplementedError


class CatBoostNumbers(_Seeded):
    """CatBoost with its uncertainty loss: a mean and a variance for each sample."""

    def _make(self) -> Any:
        return _import("catboost").CatBoostRegressor(
            loss_function="RMSEWithUncertainty", random_seed=self.random_state, verbose=0, allow_writing_files=False
        )

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Means, or means and standard deviations."""
        mean, variance = np.asarray(self.model_.predict(X)).T
        return (mean, np.sqrt(variance)) if return_std else mean


class CatBoostClasses(_Seeded):
    """CatBoost's classifier with its defaults."""

    def _make(self) -> Any:
        return _import("catboost").CatBoostClassifier(
            random_seed=self.random_state, verbose=0, allow_writing_files=False
        )

    @property
    def classes_(self) -> Any:
        """Labels in the order of the probabilities."""
        return self.model_.classes_

    def predict_proba(self, X: Array) -> Array:
        """Probability of each class."""
        return np.asarray(self.model_.predict_proba(X))


class NGBoostNumbers(_Seeded):
    """Natural gradient boosting with a Gaussian density."""

    def _make(self) -> Any:
        return _import("ngboost").NGBRegressor(random_state=self.random_state, verbose=False)

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Means, or means and standard deviations."""
        found = self.model_.pred_dist(X)
        return (found.loc, found.scale) if return_std else found.loc

"""Boosting libraries with densities of their own, as rows of the tables where they are installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from distreduce.exceptions import InvalidInputError
from distreduce_paper.problems import Array

NEEDS = {"CatBoost": "catboost", "NGBoost": "ngboost"}


def is_missing(method: str) -> bool:
    """Whether the method needs a library that is not installed."""
    return method in NEEDS and find_spec(NEEDS[method]) is None


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InvalidInputError(f"This row needs {name}: pip install {name}.") from error


class CatBoostNumbers:
    """CatBoost with its uncertainty loss: a mean and a variance for each sample."""

    def __init__(self, seed: int) -> None:
        self.model = _import("catboost").CatBoostRegressor(
            loss_function="RMSEWithUncertainty", random_seed=seed, verbose=0, allow_writing_files=False
        )

    def fit(self, X: Array, y: Array) -> CatBoostNumbers:
        """Fit to samples and targets."""
        self.model.fit(X, y)
        return self

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Means, or means and standard deviations."""
        mean, variance = np.asarray(self.model.predict(X)).T
        return (mean, np.sqrt(variance)) if return_std else mean


class NGBoostNumbers:
    """Natural gradient boosting with a Gaussian density."""

    def __init__(self, seed: int) -> None:
        self.model = _import("ngboost").NGBRegressor(random_state=seed, verbose=False)

    def fit(self, X: Array, y: Array) -> NGBoostNumbers:
        """Fit to samples and targets."""
        self.model.fit(X, y)
        return self

    def predict(self, X: Array, return_std: bool = False) -> Any:
        """Means, or means and standard deviations."""
        found = self.model.pred_dist(X)
        return (found.loc, found.scale) if return_std else found.loc


def make_catboost_classifier(seed: int) -> Any:
    """CatBoost's classifier with its defaults."""
    return _import("catboost").CatBoostClassifier(random_seed=seed, verbose=0, allow_writing_files=False)

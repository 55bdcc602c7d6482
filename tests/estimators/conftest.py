"""Data and models that the tests of the estimators share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1

Pair = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="session")
def regression() -> Pair:
    """60 × 5, one number each."""
    X, y = make_friedman1(60, n_features=5, random_state=0)
    X, y = X - X.mean(axis=0), (y - y.mean()) / y.std()
    return _frozen(X, y)


@pytest.fixture(scope="session")
def classification() -> Pair:
    """80 × 6, three classes."""
    X, y = make_classification(
        80, 6, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, class_sep=1.5, random_state=0
    )
    return _frozen(X, y)


def _frozen(X: np.ndarray, y: np.ndarray) -> Pair:
    """Read-only, so that no test can change what the next one sees (and every test checks that a fit does not)."""
    X.setflags(write=False)
    y.setflags(write=False)
    return X, y

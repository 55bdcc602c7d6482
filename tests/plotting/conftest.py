"""Fitted models of the plots' tests, and a guard of matplotlib's settings."""

from __future__ import annotations

import matplotlib
import pytest
from plotting.iris_plots import LABELS, LENGTHS, X

from distreduce import SDR, DistR


@pytest.fixture(autouse=True)
def _same_settings():
    """No plot changes a setting of matplotlib, its backend included."""
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before


@pytest.fixture(scope="session")
def classes() -> SDR:
    return SDR(n_prototypes=12, max_iter=5, random_state=0).fit(X, LABELS)


@pytest.fixture(scope="session")
def numbers() -> SDR:
    return SDR(n_prototypes=12, task="regression", random_state=0).fit(X, LENGTHS)


@pytest.fixture(scope="session")
def unsupervised() -> DistR:
    return DistR(n_prototypes=12, random_state=0).fit(X)

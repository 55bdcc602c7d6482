"""Fixtures of all tests."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from light_predictors import light_predictors

from distreduce._utils import threads

# Shared machines stall for seconds: a deadline per example would measure the machine, not the code. The examples
# are the same in every run, so that more of them cost time each day and find something once: campaigns/ go further.
settings.register_profile("distreduce", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("distreduce")


# The longest tests, in minutes each: the last test to begin must be a short one, or all other processes wait for it.
LONGEST = ("test_site.py", "test_docs.py", "test_dask_fit.py", "test_quality.py", "test_regressor_large.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files with the longest tests first; the order within a file stays."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


# Files and folders about something else than how well the default predicts, and how honest it is.
LIGHT = (
    "cli", "hostile", "interop", "persistence", "plotting", "report", "trust", "estimators/test_attributes.py",
    "estimators/test_bad_input.py", "estimators/test_convergence.py",
    "estimators/test_degenerate.py", "estimators/test_determinism.py", "estimators/test_display.py",
    "estimators/test_invariance.py", "estimators/test_options.py", "estimators/test_precomputed.py",
    "estimators/test_scikit_learn.py", "estimators/test_targets.py", "estimators/test_transform.py",
    "test_interoperability.py",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def light_files(request: pytest.FixtureRequest) -> Iterator[None]:
    """Few trees and folds in all of `LIGHT`; fixtures of a session come before it, and see to it themselves."""
    name = request.path.relative_to(Path(__file__).parent).as_posix()
    with light_predictors() if name.startswith(LIGHT) else nullcontext():
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """The seed of every test that draws numbers."""
    return np.random.default_rng(0)


@pytest.fixture
def light() -> Iterator[None]:
    """Predictors of few trees and folds."""
    with light_predictors():
        yield


@pytest.fixture(params=["numpy", "compiled"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: with the NumPy that few rows use, and with the compiled loops that many rows use."""
    if request.param == "compiled":
        monkeypatch.setattr(threads, "UNCOMPILED_ROWS", 0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the paper's data sets, from the environment variable DISTREDUCE_DATA."""
    folder = os.environ.get("DISTREDUCE_DATA")
    if not folder:
        pytest.skip("DISTREDUCE_DATA is not set: the paper's data sets are not here")
    return Path(folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Client of two worker processes of one thread each; not the current one."""
    distributed = pytest.importorskip("distributed")
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
    with (
        distributed.LocalCluster(
            **workers, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        ) as local,
        distributed.Client(local, set_as_default=False, timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """The same as the current client of a test."""
    with cluster.as_current():
        yield cluster

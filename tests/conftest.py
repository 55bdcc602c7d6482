"""Fixtures of all tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Shared machines stall for seconds: a deadline an example would measure the machine, not the code.
settings.register_profile("distreduce", deadline=None, derandomize=True)
settings.load_profile("distreduce")


@pytest.fixture
def rng() -> np.random.Generator:
    """The seed of every test that draws numbers."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the paper's data sets, from the environment variable DISTREDUCE_DATA."""
    folder = os.environ.get("DISTREDUCE_DATA")
    if not folder:
        pytest.skip("DISTREDUCE_DATA is not set: the paper's data sets are not here")
    return Path(folder)

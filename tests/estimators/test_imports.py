"""Importing distreduce is light: what only some use is imported when they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import distreduce

HEAVY = ["torch", "gpytorch", "umap", "dask", "distributed", "pynndescent", "matplotlib", "plotly", "anndata"]


@pytest.mark.parametrize("module", ["distreduce", "distreduce.metrics"])
def test_import_is_light(module: str) -> None:
    source = str(Path(distreduce.__file__).parents[1])
    script = f"import sys; sys.path.insert(0, {source!r}); import {module}; print(sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fit_without_torch() -> None:
    source = str(Path(distreduce.__file__).parents[1])
    script = (
        f"import sys; sys.path.insert(0, {source!r}); sys.modules['torch'] = None\n"
        "import numpy as np; from distreduce import SDR\n"
        "X = np.random.RandomState(0).randn(20, 3); SDR().fit(X, X[:, 0]); print('fitted')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "fitted"


def test_torch_backend_without_torch_names_the_extra() -> None:
    source = str(Path(distreduce.__file__).parents[1])
    script = (
        f"import sys; sys.path.insert(0, {source!r}); sys.modules['torch'] = None\n"
        "import numpy as np; from distreduce import SDR; from distreduce.exceptions import MissingDependencyError\n"
        "X = np.random.RandomState(0).randn(20, 3)\n"
        "try:\n    SDR(backend='torch').fit(X, X[:, 0])\n"
        "except MissingDependencyError as error:\n    print('distreduce[gp]' in str(error))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"

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
    script = (
        f"import sys; sys.path.insert(0, {source!r}); import {module}; print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_fit_is_light() -> None:
    source = str(Path(distreduce.__file__).parents[1])
    script = (
        f"import sys; sys.path.insert(0, {source!r}); import numpy as np; from distreduce import SDR\n"
        "X = np.random.RandomState(0).randn(20, 3); SDR(random_state=0).fit(X, X[:, 0])\n"
        f"print(set({HEAVY}) & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


WITHOUT_TORCH = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Missing())
sys.path.insert(0, {source!r})
import numpy as np
from distreduce import SDR
from distreduce.exceptions import MissingDependencyError
X = np.random.RandomState(0).randn(20, 3)
try:
    SDR(backend={backend!r}).fit(X, X[:, 0])
    print("fitted")
except MissingDependencyError as error:
    print(error)
"""


@pytest.mark.parametrize(("backend", "said"), [("auto", "fitted"), ("torch", "distreduce[gp]")])
def test_without_torch(backend: str, said: str) -> None:
    script = WITHOUT_TORCH.format(source=str(Path(distreduce.__file__).parents[1]), backend=backend)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said in done.stdout

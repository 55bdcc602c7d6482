"""Importing distreduce is light: what only some use is imported when they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import distreduce

HEAVY = ["torch", "gpytorch", "umap", "dask", "distributed", "pynndescent", "matplotlib", "plotly", "anndata"]


def run(script: str) -> list[str]:
    """Lines that a script prints in a process of its own."""
    start = f"import sys; sys.path.insert(0, {str(Path(distreduce.__file__).parents[1])!r})\n"
    done = subprocess.run([sys.executable, "-c", start + script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_imports_and_a_fit_are_light() -> None:
    """One process, which says after each import what has come with it."""
    rooms = ("metrics", "baselines", "plotting", "interop.anndata")
    script = (
        f"def say(*more): print(sorted({{*{HEAVY}, *more}} & set(sys.modules)))\n"
        "import distreduce; say('pooch', 'PIL', 'distreduce.datasets')\n"
        + "".join(f"import distreduce.{room}; say()\n" for room in rooms)
        + "import numpy as np; X = np.random.RandomState(0).randn(20, 3)\n"
        "distreduce.SDR(random_state=0).fit(X, X[:, 0]); say()\n"
        "from anndata import AnnData; print(distreduce.datasets.names()[0])"  # not our module of that name
    )
    assert run(script) == [*["[]"] * (len(rooms) + 2), "boston"]


WITHOUT_TORCH = """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Missing())
import numpy as np
from distreduce import SDR
from distreduce.exceptions import MissingDependencyError
X = np.random.RandomState(0).randn(20, 3)
for backend in ("auto", "torch"):
    try:
        SDR(backend=backend, random_state=0).fit(X, X[:, 0])
        print("fitted")
    except MissingDependencyError as error:
        print(error)
"""


def test_without_torch() -> None:
    auto, torch = run(WITHOUT_TORCH)
    assert auto == "fitted" and "distreduce[gp]" in torch

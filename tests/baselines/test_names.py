"""The package of baselines: names, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sklearn.decomposition

import distreduce
from distreduce import baselines

SOURCE = str(Path(distreduce.__file__).parents[1])
HEAVY = ["torch", "gpytorch", "umap", "pynndescent"]


def test_import_is_light() -> None:
    script = (
        f"import sys; sys.path.insert(0, {SOURCE!r}); import distreduce.baselines\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", baselines.__all__)
def test_every_name_is_there(name: str) -> None:
    assert isinstance(getattr(baselines, name), type)


def test_pca_is_that_of_scikit_learn() -> None:
    assert baselines.PCA is sklearn.decomposition.PCA


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="TSNE"):
        _ = baselines.TSNE


def test_names_are_listed() -> None:
    assert set(baselines.__all__) <= set(dir(baselines))

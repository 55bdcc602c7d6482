"""Symmetric entropic affinity on the paper's data sets, however their inputs are scaled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

import data_sets
from distreduce._utils.threads import workers
from distreduce.affinity import squared_distances, symmetric_entropic_affinity

TABLES = {"boston": 13, "concrete": 8, "energy": 8}
NAMES = [*TABLES, "coil20", "mnist", "fashion", "snareseq"]


def raw_inputs(name: str, folder: Path) -> np.ndarray:
    """Inputs with the relative scales of their features as they were published; images by 50 principal components."""
    if name in TABLES:
        return np.genfromtxt(folder / f"{name}.csv", delimiter=",", skip_header=1)[:, : TABLES[name]]
    if name == "snareseq":
        with np.load(folder / "snareseq.npz", allow_pickle=False) as store:
            return store["chromatin"].astype(float)
    if name == "mnist":
        return PCA(50, random_state=0).fit_transform(data_sets.mnist(folder, n=1000)[0])
    return data_sets.coil20(folder)[0] if name == "coil20" else data_sets.fashion(folder, n=1000)[0]


@pytest.fixture(scope="module", params=NAMES)
def inputs(request: pytest.FixtureRequest, data_dir: Path) -> np.ndarray:
    return raw_inputs(request.param, data_dir)


def scaled(X: np.ndarray, per_feature: bool) -> np.ndarray:
    spread = X.std(axis=0) if per_feature else X.std()
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


@pytest.mark.data
@pytest.mark.parametrize(("per_feature", "perplexity"), [(True, 20.0), (False, 30.0), (True, 50.0)])
def test_optimal_on_the_papers_data(inputs: np.ndarray, per_feature: bool, perplexity: float) -> None:
    solved = symmetric_entropic_affinity(squared_distances(scaled(inputs, per_feature)), perplexity, overwrite=True)
    assert solved.residual <= 1e-5 and solved.n_evaluations <= 60


@pytest.mark.data
@pytest.mark.slow
def test_optimal_in_single_precision_on_thousands_of_images(data_dir: Path) -> None:
    X = data_sets.fashion(data_dir, n=4000)[0]
    with workers() as pool:
        D = squared_distances(X, np.float32, workers=pool)
        solved = symmetric_entropic_affinity(D, 50.0, overwrite=True, workers=pool)
    assert solved.residual <= 1e-5 and solved.n_evaluations <= 60

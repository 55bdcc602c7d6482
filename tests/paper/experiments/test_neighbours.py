from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import euclidean_distances

from distreduce_paper import Cell, Selection, problems
from distreduce_paper.experiments.neighbours import EXPERIMENT, make_embedding, report, run
from distreduce_paper.problems import Problem
from distreduce_paper.report.blocks import Table


@pytest.fixture
def planes() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Principal components of both parts of a small regression set, scaled as the notes say, and their targets."""
    problems.add_problem(
        "small", Problem(lambda seed: make_friedman1(60, random_state=seed), "regression", seeded=True)
    )
    part = problems.load_split("small", 3)
    pca = PCA(2).fit(part.X_train)
    Z, Z_test = pca.transform(part.X_train), pca.transform(part.X_test)
    scale = np.sqrt(Z.var(axis=0).mean())
    return Z / scale, Z_test / scale, part.y_train, part.y_test


def row(method: str, data: str = "s_curve", **scores: float) -> dict[str, object]:
    """A finished cell."""
    return {"experiment": "neighbours", "data": data, "method": method, "seed": 0, "quick": False, **scores}


def test_seven_methods_on_three_sets_with_five_seeds():
    assert len(EXPERIMENT.cells()) == 7 * 3 * 5


def test_classes_are_not_for_regressors():
    assert EXPERIMENT.cells(Selection(datasets=("coil20",))) == []


def test_kernel_ridge_has_penalty_one_and_length_one(planes):
    Z, Z_test, y, y_test = planes
    dual = np.linalg.solve(np.exp(-0.5 * euclidean_distances(Z) ** 2) + np.eye(len(Z)), y)
    predicted = np.exp(-0.5 * euclidean_distances(Z_test, Z) ** 2) @ dual

    results = run(Cell("neighbours", "small", "PCA", 3))

    assert results["krr_test"] == pytest.approx(r2_score(y_test, predicted), rel=1e-3)


def test_neighbours_are_the_ten_nearest(planes):
    Z, Z_test, y, y_test = planes
    nearest = euclidean_distances(Z_test, Z).argsort(axis=1)[:, :10]

    results = run(Cell("neighbours", "small", "PCA", 3))

    assert results["knn_test"] == pytest.approx(r2_score(y_test, y[nearest].mean(axis=1)), rel=1e-3)


@pytest.mark.parametrize(
    ("data", "method", "parameter", "value"),
    [
        ("swiss_roll", "UMAP", "n_neighbors", 20),
        ("s_curve", "UMAP", "n_neighbors", 50),
        ("swiss_roll", "KSPCA", "length_scale", 0.5),
        ("friedman", "KSPCA", "length_scale", "median"),
    ],
)
def test_settings_are_those_of_the_notes(data, method, parameter, value):
    assert make_embedding(Cell("neighbours", data, method, 0)).get_params()[parameter] == value


def test_rows_are_held_against_the_papers():
    cells = pd.DataFrame(
        [row(name, knn_test=0.9) for name in ("SDR", "SDR, paper's algorithm", "UMAP", "KSPCA", "NCA")]
    )

    table = next(block for block in report(cells) if isinstance(block, Table))

    assert [one.counterpart for one in table.comparisons] == ["SDR", "SDR", "S-UMAP", "KSPCA"]


@pytest.mark.parametrize(
    ("rows", "tables"),
    [([row("SDR", knn_test=0.9)], 1), ([row("my <method>", "mine", krr_test=0.9, knn_train=0.9)], 2)],
)
def test_a_report_of_few_cells_has_the_tables_it_can(rows, tables):
    assert sum(isinstance(block, Table) for block in report(pd.DataFrame(rows))) == tables

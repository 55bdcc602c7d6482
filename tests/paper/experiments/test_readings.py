from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import pairwise_distances, silhouette_samples

from distreduce_paper.experiments import readings
from distreduce_paper.experiments.readings import EXPERIMENT, NUMBERS, report
from distreduce_paper.published import get_published
from distreduce_paper.report.blocks import Table


def test_fgw_only_is_not_fitted_again_for_switches_of_cka():
    cells = [cell for cell in EXPERIMENT.cells() if cell.data == "snareseq" and cell.seed == 0]
    words = {method: {cell.parameters["reading"] for cell in cells if cell.method == method} for method in readings.ETA}

    assert "centred=True" in words["SDR"] - words["FGW-only"]
    assert "lr=0.1" in words["SDR"] & words["FGW-only"]
    assert len(set(cells)) == len(cells)


def test_with_equal_masses_the_silhouette_is_the_usual_one(rng):
    Z, classes = rng.normal(size=(12, 2)), np.repeat([0, 1, 2], 4)
    found = readings._silhouette(pairwise_distances(Z), classes, np.ones(12))
    assert found == pytest.approx(silhouette_samples(Z, classes).mean())


def frame(values):
    """One reading with the given eight numbers, in every form of the scores."""
    rows = {}
    for (data, method, score), value in zip(NUMBERS, values, strict=True):
        names = readings.FORMS if score == "cka" else readings.SILHOUETTES
        rows.setdefault((data, method), {}).update(dict.fromkeys(names, value))
    fixed = {"experiment": "readings", "seed": 0, "reading": "", "used": 100}
    return pd.DataFrame([{"data": data, "method": method, **fixed, **own} for (data, method), own in rows.items()])


def test_distances_are_in_standard_deviations_of_the_paper():
    paper = [get_published("bottleneck", method, data, score) for data, method, score in NUMBERS]

    tables = [block for block in report(frame([one.mean + 3 * one.std for one in paper])) if isinstance(block, Table)]

    assert list(tables[0].frame["distance"]) == ["", "3.0"]
    assert list(tables[0].frame["within 2"]) == ["", "0 of 8"]


def test_without_cells_there_are_only_the_notes():
    assert len(report(pd.DataFrame())) == 1


def test_cka_is_that_of_the_rows_it_names(rng):
    Z, T = rng.normal(size=(5, 2)), np.eye(5)[np.r_[0, 1, 2, rng.integers(3, size=9)]]  # two prototypes are empty
    Y = np.eye(2)[rng.integers(2, size=12)]

    used = readings._cka(Z, T, Y, "one", "used", True)

    assert used == pytest.approx(readings._cka(Z[:3], T[:, :3], Y, "one", "normalised", True))
    at_samples = readings._cka(T @ Z, np.eye(12), Y, "one", "unit", False)
    assert readings._cka(Z, T, Y, "one", "samples", False) == pytest.approx(at_samples)

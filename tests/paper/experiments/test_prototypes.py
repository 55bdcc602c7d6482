from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import homogeneity_score

from distreduce import DistR
from distreduce_paper import Cell, Selection
from distreduce_paper.experiments import prototypes
from distreduce_paper.experiments.prototypes import EXPERIMENT, report, run
from distreduce_paper.report.blocks import Figure, Table, Text


def frame(*rows: tuple[str, str, int, float]) -> pd.DataFrame:
    """Cells (data, method, m, score), each with two seeds that differ by two."""
    return pd.DataFrame(
        [
            {"experiment": "prototypes", "data": data, "method": method, "seed": seed, "quick": False,
             "n_prototypes": m, "homogeneity": score + 2 * seed, "nmi": score, "silhouette": score, "cka": 0.5,
             "used": m, "cpu_seconds": 1.0 + seed}
            for data, method, m, score in rows
            for seed in range(2)
        ]
    )  # fmt: skip


@pytest.fixture
def undrawn(monkeypatch):
    """Figures take a second each: for what is said in words they stay empty."""
    monkeypatch.setattr(prototypes, "draw_figure", lambda name, caption, size, draw: Figure(name, caption, ""))


def test_the_grid_is_that_of_the_paper():
    cells = EXPERIMENT.cells()

    assert Counter(cell.data for cell in cells) == {"coil20": 6 * 5 * 5, "fashion": 7 * 5 * 5, "snareseq": 6 * 5 * 5}


@pytest.mark.parametrize("data", ["coil20", "snareseq"])
def test_what_is_left_out(data):
    assert EXPERIMENT.cells(Selection(datasets=(data,), methods=("SDR, eta=n",))) == []


def test_a_cell_scores_the_reduction_that_its_names_say(blobs):
    X, y = blobs

    results = run(Cell("prototypes", "blobs", "DistR", 1, {"n_prototypes": 6}))

    model = DistR(n_prototypes=6, perplexity=10.0, random_state=1).fit(X)
    assert results["homogeneity"] == pytest.approx(100 * homogeneity_score(y, model.labels_), rel=1e-4)


@pytest.mark.parametrize(
    "cells",
    [
        frame(("coil20", "DistR", 20, 50.0)),
        frame(("coil20", "SDR", 60, 50.0), ("mine", "my <method>", 7, np.nan)),
    ],
)
def test_a_report_of_few_cells_has_both_figures(cells):
    assert sum(isinstance(block, Figure) for block in report(cells)) == 2


@pytest.mark.parametrize("method", ["DR-then-Cluster", "DistR"])
def test_what_cells_share_is_explained_where_they_do(method, undrawn):
    said = [block.text for block in report(frame(("fashion", method, 20, 50.0))) if isinstance(block, Text)]

    assert any("computed once per data set" in text for text in said) == (method == "DR-then-Cluster")


def test_tables_hold_means_and_sample_deviations(undrawn):
    table = next(block for block in report(frame(("coil20", "SDR", 20, 50.0))) if isinstance(block, Table))

    assert table.frame.iloc[0].tolist() == ["SDR", "20", "51.0 ± 1.4", "50.0 ± 0.0", "50.0 ± 0.0", "0.500 ± 0.000",
                                            "20.0 ± 0.0", "1.50 ± 0.71"]  # fmt: skip


def test_points_at_which_sdr_leads_are_counted_against_the_best_of_the_others(undrawn):
    cells = frame(
        ("coil20", "SDR", 20, 60.0), ("coil20", "DistR", 20, 50.0), ("coil20", "Cluster-then-DR", 20, 59.0),
        ("coil20", "SDR", 60, 40.0), ("coil20", "DistR", 60, 50.0), ("coil20", "SDR", 100, 90.0),
    )  # fmt: skip

    said = [block.text for block in report(cells) if isinstance(block, Text)]

    assert any("at 3 of 6 points" in text for text in said)


def test_the_same_cells_give_the_same_drawings():
    cells = frame(("coil20", "SDR", 20, 60.0), ("coil20", "DistR", 20, 50.0))
    first, second = ([block.svg for block in report(cells) if isinstance(block, Figure)] for _ in range(2))

    assert first == second

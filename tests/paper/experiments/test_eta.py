from __future__ import annotations

import pandas as pd
import pytest

from distreduce import SDR
from distreduce.metrics import reduction_scores
from distreduce_paper import Cell, Selection
from distreduce_paper.experiments.eta import EXPERIMENT, report, run
from distreduce_paper.report.blocks import Figure


def row(experiment: str, method: str, m: int, data: str = "coil20", **more: object) -> dict[str, object]:
    """A finished cell."""
    scores = {"homogeneity": 90.0, "nmi": 80.0, "silhouette": 70.0}
    return {"experiment": experiment, "data": data, "method": method, "seed": 0, "n_prototypes": m, **scores, **more}


def test_the_grid_is_that_of_the_paper_with_five_seeds():
    assert len(EXPERIMENT.cells()) == 2 * 3 * 6 * 5


def test_methods_without_an_eta_have_no_cells():
    assert EXPERIMENT.cells(Selection(methods=("DistR", "FGW-only"))) == []


def test_a_cell_is_fitted_with_its_eta(blobs):
    X, y = blobs

    results = run(Cell("eta", "blobs", "SDR", 0, {"n_prototypes": 12, "eta": 1}))

    model = SDR.paper(n_prototypes=12, perplexity=10.0, eta=1.0, random_state=0).fit(X, y)
    assert results["silhouette"] == pytest.approx(reduction_scores(model, y)["silhouette"], rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([row("prototypes", "DistR", 20)], []),
        ([row("eta", "SDR", 20, eta=10)], ["eta_coil20"]),
        ([row("eta", "SDR", 20, eta=10), row("eta", "SDR", 100, "snareseq", eta=1)], ["eta_coil20", "eta_snareseq"]),
    ],
)
def test_a_report_of_few_cells_has_a_figure_a_data_set(rows, names):
    assert [block.name for block in report(pd.DataFrame(rows)) if isinstance(block, Figure)] == names


@pytest.mark.parametrize(("m", "data", "shown"), [(20, "coil20", True), (60, "coil20", False), (20, "fashion", False)])
def test_level_lines_are_those_of_the_same_data_and_number_of_prototypes(m, data, shown):
    cells = pd.DataFrame([row("eta", "SDR", 20, eta=10), row("prototypes", "DistR", m, data)])

    assert ("DistR" in report(cells)[-1].svg) == shown

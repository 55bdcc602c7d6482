from __future__ import annotations

import pandas as pd
import pytest
from sklearn.datasets import make_s_curve
from sklearn.decomposition import PCA

from distreduce_paper import Cell, Selection, problems
from distreduce_paper.experiments.toys import EXPERIMENT, report, run
from distreduce_paper.problems import Problem
from distreduce_paper.report.blocks import Figure


def row(data: str, method: str, seed: int = 0) -> dict[str, object]:
    """A finished cell with three points."""
    points = dict.fromkeys(("first", "second", "x", "y", "z", "target"), [0.0, 1.0, 2.0])
    return {"experiment": "toys", "data": data, "method": method, "seed": seed, **points}


def test_one_seed_of_four_methods_on_two_data_sets():
    assert len(EXPERIMENT.cells()) == 2 * 4


def test_data_of_other_than_three_features_are_not_drawn():
    problems.add_problem("flat", Problem(lambda seed: (None, None), "regression"))

    assert EXPERIMENT.cells(Selection(datasets=("flat",))) == []


def test_points_are_those_of_the_embedding(monkeypatch):
    X, t = make_s_curve(30, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    monkeypatch.setitem(problems.PROBLEMS, "s_curve", Problem(lambda seed: (X, t), "regression"))
    problems._load_whole.cache_clear()  # it may hold the real S-curve

    results = run(Cell("toys", "s_curve", "PCA", 0))

    problems._load_whole.cache_clear()
    assert results["first"] == pytest.approx(PCA(2).fit_transform(X)[:, 0], rel=1e-3)


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # matplotlib before 3.11, for so few points
@pytest.mark.parametrize(
    ("rows", "figures"),
    [
        ([row("s_curve", "SDR", seed=1)], 0),
        ([row("s_curve", "SDR")], 1),
        ([row("s_curve", "SDR"), row("swiss_roll", "my <method>")], 1),
    ],
)
def test_a_report_of_few_cells_has_its_figure_if_it_has_the_first_seed(rows, figures):
    assert sum(isinstance(block, Figure) for block in report(pd.DataFrame(rows))) == figures

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from distreduce_paper import Cell, Selection, problems
from distreduce_paper.experiments.picture import EXPERIMENT, SETS, make_plane, measure_coverage, run
from distreduce_paper.problems import Problem
from distreduce_paper.report.blocks import Table, Text


def rows(method: str, *scores: float, data: str = "scikit-learn iris", **said: float) -> list[dict[str, object]]:
    """Finished cells, one per score."""
    return [
        {"experiment": "picture", "data": data, "method": method, "seed": seed, "quick": False, "held_out": score,
         "fit_seconds": 1.0, **said}
        for seed, score in enumerate(scores)
    ]  # fmt: skip


def tables(*cells: list[dict[str, object]]) -> list[pd.DataFrame]:
    return [block.frame for block in EXPERIMENT.report(pd.DataFrame(sum(cells, []))) if isinstance(block, Table)]


def texts(*cells: list[dict[str, object]]) -> str:
    return "\n".join(block.text for block in EXPERIMENT.report(pd.DataFrame(sum(cells, []))) if isinstance(block, Text))


def test_every_set_has_the_planes_of_its_task_with_five_seeds():
    numbers = sum(one.task == "regression" for one in SETS.values())

    assert len(EXPERIMENT.cells()) == 5 * (6 * numbers + 7 * (len(SETS) - numbers))


@pytest.mark.parametrize(
    ("data", "method"),
    [("scikit-learn diabetes", "LDA"), ("scikit-learn diabetes", "NCA"), ("scikit-learn iris", "PLS")],
)
def test_methods_are_left_out_where_the_target_does_not_suit_them(data, method):
    assert EXPERIMENT.cells(Selection(datasets=(data,), methods=(method,))) == []


@pytest.mark.parametrize("percent", [0, 10, 30])
def test_the_stated_share_of_the_labels_is_changed(percent):
    clean = make_classification(1000, 10, n_informative=4, n_classes=3, flip_y=0.0, random_state=2)[1]

    y = SETS[f"labels, {percent} % flipped"].load(2)[1]

    assert np.count_nonzero(y != clean) == 10 * percent and set(y) == {0, 1, 2}


def test_the_score_is_that_of_ten_neighbours_of_samples_held_out():
    problems.add_problem("small", Problem(lambda seed: make_friedman1(80, random_state=0), "regression"))
    X, X_test, y, y_test = train_test_split(*make_friedman1(80, random_state=0), test_size=0.3, random_state=3)
    scaler = StandardScaler().fit(X)
    pca = PCA(2).fit(scaler.transform(X))
    Z, Z_test = (pca.transform(scaler.transform(part)) for part in (X, X_test))
    nearest = euclidean_distances(Z_test, Z).argsort(axis=1)[:, :10]

    results = run(Cell("picture", "small", "PCA", 3))

    assert results["held_out"] == pytest.approx(r2_score(y_test, y[nearest].mean(axis=1)), rel=1e-3)


@pytest.mark.parametrize(
    ("method", "parameter", "value"),
    [("SDR, m = n", "n_prototypes", None), ("SDR, m = n/10", "n_prototypes", 7), ("LDA", "n_components", 1)],
)
def test_planes_suit_the_training_targets(method, parameter, value):
    assert make_plane(method, 0, np.arange(75) % 2).get_params()[parameter] == value


def test_coverage_is_judged_by_the_range_of_the_nearest_prototype_in_use():
    model = SimpleNamespace(
        prototypes_=np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]]),
        prototype_weights_=np.array([0.5, 0.0, 0.5]),
        prototype_evidence_=pd.DataFrame({"5 % y": [0.0, 20.0, 10.0], "95 % y": [1.0, 21.0, 11.0]}),
    )
    Z = np.array([[1.0, 0.0], [4.0, 0.0], [1.0, 1.0], [9.0, 0.0]])

    assert measure_coverage(model, Z, np.array([0.5, 0.5, 10.5, 11.0])) == 0.5


@pytest.mark.parametrize(("data", "warned"), [("pure noise, numbers", 1.0), ("Friedman #1, noise 0", 0.0)])
def test_a_fit_says_how_well_its_plane_predicts_and_whether_there_is_a_signal(data, warned):
    results = run(Cell("picture", data, "SDR, m = n/10", 0, quick=True))

    assert results["no_signal"] == warned and 0.5 < results["coverage"] <= 1.0
    assert results["left_out"] == pytest.approx(results["held_out"], abs=0.3)


def test_gaps_are_those_of_means_to_the_best_other_plane():
    first = tables(
        rows("SDR, m = n", 0.7, 0.9), rows("PCA", 0.9, 0.5), rows("LDA", 0.7, 0.8), rows("all features", 1.0)
    )[0]

    assert first.loc[0, ["SDR, m = n", "PLS or LDA", "gap of SDR, m = n"]].tolist() == ["0.800", "0.750", "+0.050"]


def test_leads_are_over_the_sets_that_a_plane_has():
    cells = (
        rows("SDR, m = n", 0.9),
        rows("NCA", 0.8),
        rows("SDR, m = n", 0.1, data="scikit-learn diabetes"),
        rows("PCA", 0.3, data="scikit-learn diabetes"),
    )

    assert tables(*cells)[1].to_numpy().tolist() == [["PCA", "−0.200"], ["NCA", "+0.100"]]


def test_limits_are_counted_and_where_they_fail_is_said():
    said = {"fitted": 0.9, "all_features": 0.5, "no_signal": 0.0}
    text = texts(
        rows("SDR, m = n", 0.50, data="scikit-learn diabetes", left_out=0.52, coverage=0.9, **said),
        rows("PCA", 0.53, data="scikit-learn diabetes"),
        rows("SDR, m = n", 0.1, data="pure noise, numbers", left_out=-0.1, coverage=0.96, **said),
        rows("PCA", 0.9, data="pure noise, numbers"),
    )

    assert "behind the best other plane: 0 of 1 cases; not scikit-learn diabetes (SDR, m = n: −0.030)." in text
    assert "within 0.03 of held out: 1 of 2 cases; not pure noise, numbers (SDR, m = n: −0.200)." in text
    assert "Coverage of 85 % to 95 %: 1 of 2 cases" in text


def test_what_is_displayed_is_compared_with_what_is_held_out_in_the_plane_and_with_all_features():
    said = tables(
        rows("SDR, m = n", 0.30, 0.60, left_out=0.50, all_features=0.55), rows("all features", 0.35, 0.65, 0.95)
    )[1]

    assert said.loc[0, ["displayed − held out", "the same, all features"]].tolist() == ["+0.050", "+0.050"]


@pytest.mark.parametrize(
    ("cells", "number"), [(rows("PCA", 0.5), 1), (rows("SDR, m = n", 0.5), 2), (rows("my <method>", 0.5), 1)]
)
def test_a_report_of_few_cells_has_the_tables_it_can(cells, number):
    assert len(tables(cells)) == number

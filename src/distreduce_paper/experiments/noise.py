"""Beyond the paper: noisy targets, and the ridge of the out-of-sample map that they need."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KNeighborsRegressor

from distreduce import SDR
from distreduce_paper.cell import Cell
from distreduce_paper.experiment import Experiment
from distreduce_paper.problems import Problem, add_own_problem, load_split
from distreduce_paper.report.blocks import Block, Table, Text

DATA = "scikit-learn diabetes"
add_own_problem(DATA, Problem(lambda seed: load_diabetes(return_X_y=True), "regression"))
COLUMNS = {
    "in_plane": "R² in the plane",
    "all_features": "R² on all ten features",
    "spread": "spread of the embedding",
}
NOTES = """\
The embedding has seen y, so with a small ridge the map learns noise. The table shows R² of ten nearest neighbours on \
held-out samples of scikit-learn's diabetes data, whose targets are noisy. The last column is the spread of the \
embedding, which the ridge shrinks and CKA does not see."""


def run(cell: Cell) -> dict[str, Any]:
    """Score ten nearest neighbours in the plane for one ridge, and on all features."""
    parts = load_split(cell.data, cell.seed, quick=cell.quick)
    map_reg = float(str(cell.parameters["map_reg"]))
    model = SDR(map_reg=map_reg, task="regression", random_state=cell.seed).fit(parts.X_train, parts.y_train)
    in_plane = KNeighborsRegressor(10).fit(model.embedding_, parts.y_train)
    # Independent of the ridge: what the plane would have to reach.
    on_all = KNeighborsRegressor(10).fit(parts.X_train, parts.y_train)
    return {
        "in_plane": round(in_plane.score(model.transform(parts.X_test), parts.y_test), 4),
        "all_features": round(on_all.score(parts.X_test, parts.y_test), 4),
        "spread": round(float(model.embedding_.std(axis=0).max()), 4),
    }


def report(frame: pd.DataFrame) -> list[Block]:
    """Show one row per ridge."""
    if frame.empty:
        return [Text(NOTES)]
    means = frame.groupby("map_reg")[list(COLUMNS)].mean()
    columns = {"map_reg": [f"{ridge:g}" for ridge in means.index]}
    columns |= {title: [f"{value:.3f}" for value in means[name]] for name, title in COLUMNS.items()}
    return [Text(NOTES), Table("Diabetes, means over seeds.", pd.DataFrame(columns))]


EXPERIMENT = Experiment(
    name="noise",
    title="Noisy targets and the ridge of the map",
    paper="",
    kind="embedding",
    datasets=(DATA,),
    task="regression",
    methods=("SDR",),
    grid={"map_reg": (0.01, 0.1, 0.3, 1.0)},
    run=run,
    report=report,
    skips=lambda data, method: (data, method) != (DATA, "SDR"),
)

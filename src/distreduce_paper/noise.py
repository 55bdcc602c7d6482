"""Beyond the paper: noisy targets, and the ridge of the out-of-sample map that they need."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KNeighborsRegressor

from distreduce import SDR
from distreduce._utils.typing import Array
from distreduce_paper.blocks import Block, Table, Text
from distreduce_paper.cell import Cell
from distreduce_paper.experiment import Experiment
from distreduce_paper.problems import Problem, include, split

NOTES = """\
The embedding has seen y, so a small ridge lets the map learn noise. R² of ten nearest neighbours on held-out \
samples of scikit-learn's diabetes data, whose targets are noisy; the last column is the spread of the \
embedding, which CKA does not see and the ridge shrinks."""


def _diabetes(seed: int) -> tuple[Array, Array]:
    X, y = load_diabetes(return_X_y=True)
    return X, y


DATA = "scikit-learn diabetes"
include(DATA, Problem(_diabetes, "regression"))


def run(cell: Cell) -> dict[str, Any]:
    """R² in the plane for one ridge, and on all features."""
    parts = split(cell.data, cell.seed, quick=cell.quick)
    map_reg = float(str(cell.parameters["map_reg"]))
    model = SDR(map_reg=map_reg, task="regression", random_state=cell.seed).fit(parts.X_train, parts.y_train)
    in_plane = KNeighborsRegressor(10).fit(model.embedding_, parts.y_train)
    on_all = KNeighborsRegressor(10).fit(parts.X_train, parts.y_train)
    return {
        "in_plane": round(in_plane.score(model.transform(parts.X_test), parts.y_test), 4),
        "all_features": round(on_all.score(parts.X_test, parts.y_test), 4),
        "spread": round(float(model.embedding_.std(axis=0).max()), 4),
    }


def report(frame: pd.DataFrame) -> list[Block]:
    """A row a ridge."""
    if frame.empty:
        return [Text(NOTES)]
    means = frame.groupby("map_reg")[["in_plane", "all_features", "spread"]].mean()
    table = pd.DataFrame(
        {
            "map_reg": [f"{ridge:g}" for ridge in means.index],
            "R² in the plane": [f"{value:.3f}" for value in means["in_plane"]],
            "R² on all ten features": [f"{value:.3f}" for value in means["all_features"]],
            "spread of the embedding": [f"{value:.3f}" for value in means["spread"]],
        }
    )
    return [Text(NOTES), Table("Diabetes, means over seeds.", table)]


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

"""The standard splits of UCI sets."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from distreduce.exceptions import InvalidInputError
from distreduce_paper.experiment import Cell
from distreduce_paper.experiments import uci
from distreduce_paper.report.blocks import Table

FOLDER = Path(os.environ.get("DISTREDUCE_UCI", "."))


@pytest.mark.parametrize("name", uci.LOADERS)
def test_splits_are_those_of_the_literature(name: str) -> None:
    if not (FOLDER / f"{name}.npz").exists():
        pytest.skip("DISTREDUCE_UCI has no such file")
    published = np.load(FOLDER / f"{name}.npz", allow_pickle=False)
    for split in (0, 7, 19):
        assert_array_equal(np.sort(uci.draw_test_rows(len(published["X"]), split)), np.sort(published["test"][split]))


def test_a_split_keeps_every_row_once() -> None:
    parts = [uci.draw_test_rows(100, split) for split in range(3)]
    assert [len(np.unique(part)) for part in parts] == [10, 10, 10] and not np.array_equal(parts[0], parts[1])


def test_a_missing_folder_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISTREDUCE_UCI", raising=False)
    with pytest.raises(InvalidInputError, match=r"DISTREDUCE_UCI, a folder with power_plant\.npz"):
        uci.split_rows("UCI power_plant", 0)


def test_scores_are_in_the_units_of_the_target(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    X = rng.normal(size=(120, 2))
    y = 1000 * X[:, 0] + 10 * rng.normal(size=120)
    problem = uci.get_problem("UCI boston")
    monkeypatch.setattr(uci, "get_problem", lambda _: type(problem)(lambda seed: (X, y), "regression"))
    scores = uci.run(Cell("uci", "UCI boston", "linear", 0, {}, False))
    assert 5 < scores["rmse"] < 15 and 3 < scores["nll"] < 4.5 and scores["within_90"] > 0.6


def test_report_ends_with_the_published_figures() -> None:
    row = {"data": "UCI boston", "method": "linear", "nll": 3.0, "rmse": 5.0, "within_90": 0.9, "fit_seconds": 0.1}
    (table,) = uci.report(pd.DataFrame([row, row]))
    assert isinstance(table, Table) and table.frame.iloc[-1]["NLL"] == "2.35 ± 0.06, Evidential"

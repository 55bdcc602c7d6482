"""The page of a fit states the scores of metrics.json, and `distreduce report` writes the same page again."""

from __future__ import annotations

import json
import re
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from cli.quick_predictor import quick_predictor

from distreduce.cli.main import main

HEADINGS = {
    "R²": "r2", "RMSE": "rmse", "mean log density": "mll", "share in 90 % intervals": "coverage_90",
    "calibration error (MACE)": "mace", "accuracy": "accuracy", "mean log probability": "mlp",
    "Brier score (sum over classes)": "brier", "calibration error (ECE)": "ece",
    "ECE by chance alone": "ece_by_chance",
}  # fmt: skip
TARGETS = {"one": ["price"], "two": ["price", "rent"], "classes": ["town"]}


def run(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["distreduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
    return stopped.value.code or 0


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Folders of fits to targets in large and in small units, with errors that have wide tails, and to classes."""
    where, rng = tmp_path_factory.mktemp("fitted"), np.random.default_rng(3)
    X = rng.normal(size=(90, 2))
    table = pd.DataFrame(X, columns=["size", "age"])
    table["price"] = (300 + 100 * X[:, 0] + 30 * rng.standard_t(2, size=90)).round(2)
    table["rent"] = (0.01 * X[:, 1] ** 2 + 0.003 * rng.standard_t(2, size=90)).round(6)
    table["town"] = np.array(["Rome", "Oslo", "Bern"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=90), [-0.4, 0.5])]
    for name, targets in TARGETS.items():
        others = set.union(*map(set, TARGETS.values())) - set(targets)
        table.drop(columns=list(others)).to_csv(where / f"{name}.csv", index=False)
        asked = [part for target in targets for part in ("-t", target)]
        with quick_predictor():
            assert run("fit", where / f"{name}.csv", *asked, "--out", where / name, "--prototypes", 6, "-q") == 0
    return where


def shown(page):
    """The table of scores on the page: by model, by heading."""
    part = page.read_text("utf-8").split('<table class="scores">')[1].split("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", part, re.S)]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}


@pytest.mark.parametrize("name", TARGETS)
def test_the_page_shows_the_scores_of_the_metrics(fitted, name):
    expected = json.loads((fitted / name / "metrics.json").read_text())["held_out"]
    for model, texts in shown(fitted / name / "report.html").items():
        assert f"Scores on {expected['test_rows']} rows" in (fitted / name / "report.html").read_text("utf-8")
        scores = expected["scores"][model]
        # The page rounds the score itself, metrics.json another time before.
        found = {HEADINGS[key]: float(text.replace("−", "-")) for key, text in texts.items()}
        assert found == pytest.approx({name: scores[name] for name in found}, rel=2e-4, abs=6e-4)


@pytest.mark.parametrize("name", TARGETS)
def test_the_page_is_rebuilt_to_the_byte(fitted, tmp_path, name):
    folder = shutil.copytree(fitted / name, tmp_path / "copy")
    before = (folder / "report.html").read_bytes()
    assert run("report", folder, "-q") == 0
    assert (folder / "report.html").read_bytes() == before


@pytest.mark.parametrize(("column", "value"), [("level", 2.0), ("scale", 0.0), ("q05", 1e9), ("level", "wide")])
def test_spoilt_columns_are_one_sentence(fitted, tmp_path, capsys, column, value):
    folder = shutil.copytree(fitted / "one", tmp_path / "copy")
    table = pd.read_csv(folder / "held_out.csv").astype({column: object})
    table.loc[:3, column] = value
    table.to_csv(folder / "held_out.csv", index=False)
    assert run("report", folder) == 1 and capsys.readouterr().err.count("\n") == 1


def test_a_target_that_is_constant_in_the_training_rows_is_scored(fitted, quick, tmp_path):
    table, tested = pd.read_csv(fitted / "two.csv"), pd.read_csv(fitted / "two" / "held_out.csv")["row"].unique()
    table["rent"] = np.where(table.index.isin(tested), table["rent"], 0.0)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "-t", "price", "-t", "rent", "--out", tmp_path / "out", "-q") == 0


def test_targets_whose_squares_overflow_have_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    table.assign(y=1e300 * (table["a"] + 0.1 * table["b"])).to_csv(tmp_path / "huge.csv", index=False)
    asked = ("-t", "y", "--task", "regression", "--out", tmp_path / "out", "-q")
    assert run("fit", tmp_path / "huge.csv", *asked) == 0
    scores = json.loads((tmp_path / "out" / "metrics.json").read_text())["held_out"]["scores"]
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert scores["linear"]["r2"] > 0.99 and re.search("say a lot about y|about y, and perhaps a lot", page)

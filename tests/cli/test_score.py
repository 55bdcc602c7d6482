"""`distreduce score` on a folder that `fit` wrote."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import accuracy_score, r2_score

from distreduce import load_folder
from distreduce.cli.main import main
from distreduce.metrics.held_out import accuracy_interval, r2_interval


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["distreduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.parametrize(("target", "measure"), [("price", "r2"), ("kind", "accuracy")])
def test_the_scores_are_those_of_the_predictions(call, quick, rng, target, measure):
    x = rng.normal(size=(90, 2)).round(3)
    y = {"price": x[:, 0] + 0.1 * rng.normal(size=90), "kind": np.where(x[:, 0] > 0.4, "b", "a")}[target]
    table = pd.DataFrame({"u": x[:, 0], "v": x[:, 1], target: y})
    table[:60].to_csv("t.csv", index=False)
    table[60:].to_csv("new.csv", index=False)
    assert call("fit", "t.csv", "-t", target, "--out", "f", "--prototypes", 6, "--test-size", 0, "-q")[0] == 0
    call("predict", "f", "new.csv", "-q")
    code, out, _ = call("score", "f", "new.csv", "--json")
    found, said = json.loads(out), pd.read_csv("predictions.csv")
    truth = table[target][60:]
    oracle = r2_score(truth, said["mean"]) if measure == "r2" else accuracy_score(truth, said["class"])
    assert code == 0 and found["rows"] == 30 and found["scores"]["predictor"][measure] == pytest.approx(oracle)
    right = said["class"] == truth.to_numpy() if measure == "accuracy" else None
    ends = r2_interval(truth, said["mean"]) if measure == "r2" else accuracy_interval(right)
    assert tuple(found["scores"]["predictor"][name] for name in ("low_95", "high_95")) == pytest.approx(ends)
    none = found["scores"]["no model"]
    assert none[measure] < oracle
    # No model is that of the fit: the mean or the shares of the fitted rows, not of those that are scored.
    fitted = table[target][:60]
    if measure == "r2":
        assert none["r2"] == pytest.approx(r2_score(truth, np.full(30, fitted.mean())))
    else:
        shares = fitted.value_counts(normalize=True).sort_index()
        assert none["mlp"] == pytest.approx(np.log(shares[truth]).mean())
    shown = call("score", "f", "new.csv")[1]
    assert "no model" in shown and f"95 % interval {ends[0]:.2f} to {ends[1]:.2f}" in shown
    table[60:].drop(columns=target).to_csv("new.csv", index=False)
    code, _, err = call("score", "f", "new.csv")
    assert code == 1 and f"no column {target!r}" in err


def test_no_model_and_densities_are_those_of_the_fit(call, quick, rng):
    x = rng.normal(size=(90, 2)).round(3)
    y = np.exp(x[:, 0] + 0.1 * rng.normal(size=90))
    y[[70, 80]] = 40 * y.max()  # a Gaussian with the model's deviation calls these impossible
    table = pd.DataFrame({"u": x[:, 0], "v": x[:, 1], "price": y})
    table[:60].to_csv("t.csv", index=False)
    table[60:].to_csv("new.csv", index=False)
    call("fit", "t.csv", "-t", "price", "--out", "f", "--prototypes", 6, "--test-size", 0, "-q")
    scores = json.loads(call("score", "f", "new.csv", "--json")[1])["scores"]
    folder = load_folder("f")
    X, _ = folder.recipe.matrix(table[60:][["u", "v"]], "new.csv")
    own = folder.predictor.log_density(X, y[60:]) + np.log(y[:60].std())
    assert scores["predictor"]["mll"] == pytest.approx(own.mean()) and own.min() > -50
    nothing = norm(y[:60].mean(), y[:60].std()).logpdf(y[60:]) + np.log(y[:60].std())
    assert scores["no model"]["mll"] == pytest.approx(nothing.mean())
    assert scores["no model"]["r2"] < 0  # the mean of the training rows, not of these


@pytest.mark.parametrize(("target", "cells"), [("rent", ["1,250 €", "980 €"]), ("kind", ["no", "no"])])
def test_a_few_rows_and_rows_of_one_class_are_scored(call, quick, rng, target, cells):
    """Two rents in euros were no numbers, and of ten patients who all stayed well there was "nothing to learn"."""
    rooms = rng.integers(1, 6, 60) + rng.random(60).round(2)
    y = [f"{400 * each:.0f} €" if target == "rent" else "yes" if each > 3 else "no" for each in rooms]
    pd.DataFrame({"rooms": rooms, "age": rng.normal(size=60), target: y}).to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "-t", target, "--out", "f", "--prototypes", 6, "--test-size", 0, "-q")[0] == 0
    pd.DataFrame({"rooms": [3.1, 2.4], "age": [0.1, 0.2], target: cells}).to_csv("new.csv", index=False)
    code, out, _ = call("score", "f", "new.csv")
    assert code == 0 and "2 rows of new.csv" in out


def test_classes_that_the_fit_did_not_know_are_shown(call, quick, rng):
    x = rng.normal(size=60)
    table = pd.DataFrame({"u": x, "v": rng.normal(size=60), "kind": np.where(x > 0, "yes", "no")})
    table.to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "-t", "kind", "--out", "f", "--prototypes", 6, "--test-size", 0, "-q")[0] == 0
    table.assign(kind=table["kind"].str.upper()).to_csv("new.csv", index=False)
    said = call("score", "f", "new.csv")[2]
    assert "'YES'" in said and "'NO'" in said and "are none of the classes of the fit ('no', 'yes')." in said

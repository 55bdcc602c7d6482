"""What is in the folder that `distreduce fit` writes."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from cli.quick_predictor import quick_predictor
from sklearn.datasets import load_wine

from distreduce import SDR, SDRGPClassifier
from distreduce._utils.numerics import nearest_in_use
from distreduce.cli._names import FILES
from distreduce.cli.main import main
from distreduce.tables.recipe import read_recipe


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder fitted to wine with a class of a single row, and the rows."""
    where = tmp_path_factory.mktemp("fitted")
    table = load_wine(as_frame=True).frame.iloc[::2].reset_index(drop=True)
    table["target"] = np.array(["barolo", "grignolino", "barbera"])[table["target"]]
    table.loc[7, "target"] = "lone"
    table.to_csv(where / "wine.csv", index=False)
    with quick_predictor(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        patch.setattr(sys, "argv", ["distreduce", "fit", "wine.csv", "--target", "target", "--quiet"])
        with pytest.raises(SystemExit) as stopped:
            main()
    assert not stopped.value.code
    return where / "distreduce-wine", table


def test_all_files_are_there_and_nothing_else(fitted):
    folder, _ = fitted
    assert {path.name for path in folder.parent.iterdir()} == {"wine.csv", "distreduce-wine"}
    assert {path.name for path in folder.iterdir()} == set(FILES)


def test_the_embedding_is_what_the_saved_model_says(fitted):
    folder, table = fitted
    X, _ = read_recipe(folder / "recipe.json").matrix(table, "wine.csv")
    places, model = pd.read_csv(folder / "embedding.csv"), SDR.load(folder / "model.safetensors")
    assert np.allclose(places[["sdr0", "sdr1"]], model.embedding_left_out_)
    assert np.allclose(places[["fitted sdr0", "fitted sdr1"]], model.transform(X))
    assert np.array_equal(places["fitted prototype"], model.labels_)


def test_a_prototype_is_the_nearest_to_the_place_in_every_table(fitted, call):
    folder, table = fitted
    model = SDR.load(folder / "model.safetensors")
    table.to_csv("new.csv", index=False)
    assert call("transform", folder, "new.csv", "-q")[0] == 0
    for path in (folder / "embedding.csv", "embedding.csv"):
        places = pd.read_csv(path)
        Z = places[["sdr0", "sdr1"]].to_numpy()
        nearest = nearest_in_use(Z, model.prototypes_, model.prototype_weights_)
        assert places["prototype"].tolist() == nearest.tolist()


def test_prototypes_have_the_evidence_of_left_out_rows(fitted):
    folder, _ = fitted
    prototypes, places = pd.read_csv(folder / "prototypes.csv"), pd.read_csv(folder / "embedding.csv")
    counts = places["prototype"].value_counts().reindex(prototypes["prototype"], fill_value=0)
    assert prototypes["left-out n_samples"].tolist() == counts.tolist()
    row = prototypes.loc[prototypes["left-out n_samples"].idxmax()]
    distances = np.linalg.norm(places[["sdr0", "sdr1"]] - row[["sdr0", "sdr1"]].to_numpy(dtype=float), axis=1)
    near = np.flatnonzero(places["prototype"] == row["prototype"])
    near = near if len(near) >= 19 else np.argsort(distances)[:19]
    assert row["left-out share of barolo"] == pytest.approx((places["target"].iloc[near] == "barolo").mean())
    assert {"purity", "compactness", "separation", "dubious"} <= set(prototypes)


def test_metrics_hold_the_scores_of_neighbours(fitted):
    folder, _ = fitted
    scores = json.loads((folder / "metrics.json").read_text())["picture"]["neighbor_scores"]
    assert scores == pytest.approx(SDR.load(folder / "model.safetensors").neighbor_scores_, rel=1e-5)


def test_a_prototype_shows_the_row_that_stands_for_it(fitted):
    folder, table = fitted
    prototypes = pd.read_csv(folder / "prototypes.csv")
    assert np.allclose(prototypes["medoid alcohol"], table["alcohol"].iloc[prototypes["medoid"]])


def test_held_out_rows_were_not_seen_by_the_scored_models(fitted):
    folder, table = fitted
    metrics = json.loads((folder / "metrics.json").read_text())
    held_out = pd.read_csv(folder / "held_out.csv")
    assert metrics["held_out"]["train_rows"] + held_out["row"].nunique() == len(table)


def test_the_scores_are_those_of_the_held_out_table(fitted):
    folder, _ = fitted
    scores = json.loads((folder / "metrics.json").read_text())["held_out"]["scores"]
    held_out = pd.read_csv(folder / "held_out.csv")
    hits = (held_out["class"] == held_out["true"]).groupby(held_out["model"]).mean()
    assert {name: score["accuracy"] for name, score in scores.items()} == pytest.approx(hits.to_dict(), abs=1e-5)


def test_a_class_of_a_single_row_is_in_the_fit_and_not_held_out(fitted):
    folder, _ = fitted
    assert "lone" in SDRGPClassifier.load(folder / "predictor.safetensors").classes_
    assert "lone" not in set(pd.read_csv(folder / "held_out.csv")["true"])


def test_the_command_is_kept(fitted):
    command = json.loads((fitted[0] / "metrics.json").read_text())["source"]["command"]
    assert command == "distreduce fit wine.csv --target target --quiet"

"""`distreduce transform | predict | report` on a folder that `fit` wrote."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.quick_predictor import quick_predictor

from distreduce import SDR, SDRGPClassifier, SDRGPRegressor, load_folder
from distreduce.cli._names import FILES
from distreduce.cli.main import main
from distreduce.exceptions import DataWarning, InvalidInputError
from distreduce.tables import reading
from distreduce.tables.findings import NOVEL
from distreduce.tables.recipe import read_recipe, write_recipe


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    size, town = rng.normal(size=n).round(3), rng.choice(["007", "Oslo", "Bern"], n)
    return pd.DataFrame(
        {
            "size": size,
            "town": town,
            "sold": pd.date_range("2019-01-01", periods=n, freq="20D").strftime("%Y-%m-%d"),
            "empty": "",
            "price": (2 * size + (town == "Oslo") + 0.1 * rng.normal(size=n)).round(3),
            "dear": np.where(size + 0.3 * rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def run(*arguments):
    """Exit code of the command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["distreduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
    return stopped.value.code or 0


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Folders ``numbers`` (incomplete rows dropped) and ``classes`` (imputed), fitted to t.csv."""
    where = tmp_path_factory.mktemp("fitted")
    table = rows()
    table.loc[5, "size"] = None
    table.to_csv(where / "t.csv", index=False)
    options = ("--prototypes", 8, "--quiet")
    drop, impute = ("--missing", "drop", "--drop", "dear"), ("--missing", "impute", "--drop", "price")
    with quick_predictor():
        assert run("fit", where / "t.csv", "-t", "price", "--out", where / "numbers", *drop, *options) == 0
        assert run("fit", where / "t.csv", "-t", "dear", "--out", where / "classes", *impute, *options) == 0
    return where


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """``call("predict", …)`` returns exit code, standard output and standard error, from an empty folder."""
    monkeypatch.chdir(tmp_path)

    def act(*arguments):
        return run(*arguments), *capsys.readouterr()

    return act


@pytest.fixture
def new(call):
    """new.csv: rows that the fit has not seen, without targets."""
    table = rows(30, seed=1).drop(columns=["price", "dear"])
    table.to_csv("new.csv", index=False)
    return table


def matrix(folder, table):
    return read_recipe(folder / "recipe.json").matrix(table, "new.csv")[0]


def test_transform_writes_what_the_model_says(call, fitted, new):
    call("transform", fitted / "numbers", "new.csv")
    X = matrix(fitted / "numbers", new)
    oracle = SDR.load(fitted / "numbers/model.safetensors").transform(X)
    assert np.allclose(pd.read_csv("embedding.csv")[["sdr0", "sdr1"]], oracle)


def test_the_prototype_is_the_nearest_that_is_used(call, fitted, new):
    call("transform", fitted / "numbers", "new.csv")
    found = pd.read_csv("embedding.csv")
    summary = (
        pd.read_csv(fitted / "numbers/prototypes.csv").query("weight > 0").set_index("prototype")[["sdr0", "sdr1"]]
    )
    distances = np.linalg.norm(found[["sdr0", "sdr1"]].to_numpy()[:, None] - summary.to_numpy(), axis=2)
    assert np.array_equal(found["prototype"], summary.index[distances.argmin(axis=1)])


def test_predict_writes_mean_spread_and_quantiles(call, fitted, new):
    call("predict", fitted / "numbers", "new.csv")
    model, rows = SDRGPRegressor.load(fitted / "numbers/predictor.safetensors"), matrix(fitted / "numbers", new)
    answers = [*model.predict(rows, return_std=True), model.predict_quantiles(rows), model.novelty(rows)]
    assert np.allclose(pd.read_csv("predictions.csv").drop(columns="row"), np.column_stack(answers))


def test_predict_adds_conformal_intervals_and_sets(call, fitted, new):
    call("predict", fitted / "numbers", "new.csv", "--coverage", "0.8")
    model = SDRGPRegressor.load(fitted / "numbers/predictor.safetensors")
    ends = model.predict_interval(matrix(fitted / "numbers", new), 0.8, method="conformal")
    assert np.allclose(pd.read_csv("predictions.csv")[["80% low", "80% high"]], ends)
    call("predict", fitted / "classes", "new.csv", "--out", "p.csv", "--coverage", "0.8")
    assert set(pd.read_csv("p.csv")["80% set"]) <= {"no", "yes", "no | yes"}
    call("predict", fitted / "classes", "new.csv", "--out", "q.csv", "--coverage", "0.8", "--per-class")
    model = SDRGPClassifier.load(fitted / "classes/predictor.safetensors")
    inside = model.predict_set(matrix(fitted / "classes", new), 0.8, per_class=True)
    assert np.array_equal(pd.read_csv("q.csv")["80% set"].str.count(r"\|") + 1, inside.sum(axis=1))
    assert "needs --coverage" in call("predict", fitted / "numbers", "new.csv", "--per-class")[2]


def test_rows_unlike_those_of_the_fit_are_reported(call, fitted, new):
    far = new.copy()
    numbers = far.select_dtypes("number").columns
    far[numbers] = 1e4 * (1 + far[numbers].abs())
    far.to_csv("far.csv", index=False)
    _, out, err = call("predict", fitted / "numbers", "far.csv", "--out", "far_predictions.csv")
    assert "Unlike any row of the fit" in out + err


def test_predict_writes_classes_and_probabilities(call, fitted, new):
    call("predict", fitted / "classes", "new.csv", "--out", "p.csv")
    proba = SDRGPClassifier.load(fitted / "classes/predictor.safetensors").predict_proba(
        matrix(fitted / "classes", new)
    )
    found = pd.read_csv("p.csv")
    assert np.allclose(found[["probability of no", "probability of yes"]], proba)
    assert found["class"].tolist() == np.array(["no", "yes"])[proba.argmax(axis=1)].tolist()


def test_names_of_rows_are_in_every_table(call, quick, tmp_path):
    table = rows(40).drop(columns=["dear", "empty"]).assign(id=[f"{i:03d}" for i in range(40)])
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "price", "--id", "id", "--out", "out", "--prototypes", 5, "-q")
    table[::-1].to_csv("new.csv", index=False)
    call("predict", "out", "new.csv", "-q")
    for name in ("out/embedding.csv", "out/held_out.csv", "predictions.csv"):
        found = pd.read_csv(name, dtype={"id": str})
        expected = 39 - found["row"] if name == "predictions.csv" else found["row"]
        assert found["id"].tolist() == [f"{i:03d}" for i in expected]
    assert pd.read_csv("out/prototypes.csv")["medoid id"].notna().all()
    assert not any("id" in column for column in read_recipe(Path("out/recipe.json")).columns)
    before = (tmp_path / "out/report.html").read_bytes()
    assert call("report", "out", "-q")[0] == 0 and (tmp_path / "out/report.html").read_bytes() == before


def test_columns_go_by_name(call, fitted, new):
    call("predict", fitted / "numbers", "new.csv")
    new[new.columns[::-1]].assign(extra=1).to_csv("mixed.csv", index=False)
    _, out, _ = call("predict", fitted / "numbers", "mixed.csv", "--out", "mixed_p.csv")
    assert "fit did not have: 'extra'" in out
    assert pd.read_csv("mixed_p.csv").equals(pd.read_csv("predictions.csv"))


def test_other_separators_mean_the_same(call, fitted, new):
    call("predict", fitted / "numbers", "new.csv")
    new.to_csv("other.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    call("predict", fitted / "numbers", "other.csv", "--out", "other_p.csv")
    assert pd.read_csv("other_p.csv").equals(pd.read_csv("predictions.csv"))


def test_parts_of_a_long_file_are_the_whole(call, fitted, new, monkeypatch):
    call("predict", fitted / "numbers", "new.csv")
    monkeypatch.setattr(reading, "CHUNK", 7)
    call("predict", fitted / "numbers", "new.csv", "--out", "parts.csv")
    pd.testing.assert_frame_equal(pd.read_csv("parts.csv"), pd.read_csv("predictions.csv"), rtol=1e-9)


def test_a_level_that_is_not_known_is_answered_and_reported(call, fitted, new):
    new.assign(town="Paris").to_csv("new.csv", index=False)
    code, out, _ = call("predict", fitted / "numbers", "new.csv")
    assert code == 0 and "'town': 30 rows with levels that the fit did not know ('Paris')" in out
    assert "says nothing about these rows" in out and "Check the spelling" not in out


def test_a_row_with_a_level_that_is_not_known_is_novel(call, fitted, new):
    call("predict", fitted / "numbers", "new.csv", "-q")
    new.assign(town=["Paris", *new["town"][1:]]).to_csv("paris.csv", index=False)
    call("predict", fitted / "numbers", "paris.csv", "--out", "p.csv", "-q")
    before, found = pd.read_csv("predictions.csv")["novelty"], pd.read_csv("p.csv")["novelty"]
    assert before[0] > NOVEL > found[0]
    pd.testing.assert_series_equal(found[1:], before[1:])


def test_strict_stops_at_a_level_that_is_not_known(call, fitted, new, tmp_path):
    new.assign(town="Paris").to_csv("new.csv", index=False)
    code, _, err = call("predict", fitted / "numbers", "new.csv", "--strict")
    assert code == 1 and "('Paris')" in err and [path.name for path in tmp_path.iterdir()] == ["new.csv"]


@pytest.mark.parametrize("command", ["transform", "predict"])
def test_help_says_what_becomes_of_a_level_that_is_not_known(call, command):
    words = " ".join(call(command, "--help")[1].split())
    assert 'count as "other", or as none of the levels if the fit had no "other"' in words


def test_rows_with_missing_values_stay_empty_if_the_fit_dropped_such(call, fitted, new):
    new.loc[3, "size"] = None
    new.to_csv("new.csv", index=False)
    _, out, _ = call("transform", fitted / "numbers", "new.csv")
    found = pd.read_csv("embedding.csv")
    assert "1 row\n" in out and np.flatnonzero(found["sdr0"].isna()).tolist() == [3]


def test_a_part_without_a_complete_row_stays_empty(call, fitted, new, monkeypatch):
    new.loc[:9, "size"] = None
    new.to_csv("new.csv", index=False)
    monkeypatch.setattr(reading, "CHUNK", 5)
    call("predict", fitted / "numbers", "new.csv")
    assert pd.read_csv("predictions.csv")["mean"].isna().tolist() == [True] * 10 + [False] * 20


def test_missing_values_are_filled_if_the_fit_did(call, fitted, new):
    new.assign(size="", town="").to_csv("new.csv", index=False)
    _, out, _ = call("predict", fitted / "classes", "new.csv")
    assert pd.read_csv("predictions.csv").notna().all(axis=None)
    assert "Missing cells are filled: 'size' (30). Missing cells are none of the levels: 'town' (30)." in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns=["size", "town"]), "new.csv lacks the columns 'size', 'town'"),
        (lambda t: t.rename(columns={"size": "Size m2"}), "lacks the column 'size'. Did you mean 'Size m2'?"),
        (lambda t: t.assign(size="big"), "Column 'size' should hold numbers but has 'big'"),
        (lambda t: t.assign(size=[*t["size"][1:], "big"]), "The first one is in line 31 of new.csv"),
        (lambda t: t.assign(sold="soon"), "Column 'sold' should hold dates (year-month-day) but has 'soon'"),
        (lambda t: t[:0], "has column names but no rows"),
    ],
)
def test_a_file_that_does_not_fit_is_one_sentence_and_leaves_nothing(call, fitted, new, tmp_path, change, said):
    change(new).to_csv("new.csv", index=False)
    code, _, err = call("predict", fitted / "numbers", "new.csv")
    assert (code, err.count("\n")) == (1, 1) and said in err
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_a_late_mistake_leaves_nothing(call, fitted, new, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "CHUNK", 7)
    new.astype(object).assign(size=[*new["size"][:-1], "big"]).to_csv("new.csv", index=False)
    assert call("predict", fitted / "numbers", "new.csv")[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_a_table_that_is_there_needs_overwrite(call, fitted, new, tmp_path):
    (tmp_path / "predictions.csv").write_text("mine")
    code, _, err = call("predict", fitted / "numbers", "new.csv")
    assert code == 1 and "--overwrite" in err and (tmp_path / "predictions.csv").read_text() == "mine"


def test_a_table_is_replaced_when_asked(call, fitted, new, tmp_path):
    (tmp_path / "predictions.csv").write_text("mine")
    assert call("predict", fitted / "numbers", "new.csv", "--overwrite", "-q") == (0, "", "")
    assert len(pd.read_csv("predictions.csv")) == 30


def test_standard_output_has_the_table_alone(call, fitted, new, monkeypatch):
    monkeypatch.setattr(reading, "CHUNK", 7)
    call("predict", fitted / "numbers", "new.csv")
    code, out, err = call("predict", fitted / "numbers", "new.csv", "-o", "-")
    assert (code, err) == (0, "Wrote 30 rows to -\n") and out == Path("predictions.csv").read_text()


@pytest.mark.parametrize("command", ["transform", "predict"])
def test_a_folder_that_is_none_of_ours(call, new, tmp_path, command):
    code, _, err = call(command, tmp_path, "new.csv")
    assert code == 1 and "`distreduce fit` wrote" in err


def test_a_folder_that_is_not_there(call, new):
    code, _, err = call("transform", "nowhere", "new.csv")
    assert code == 1 and "There is no folder nowhere" in err


def test_a_folder_without_a_predictor_says_so(call, fitted, new, tmp_path):
    folder = shutil.copytree(fitted / "numbers", tmp_path / "copy")
    (folder / "predictor.safetensors").unlink()
    code, _, err = call("predict", folder, "new.csv")
    assert code == 1 and "--no-predict" in err


@pytest.mark.parametrize("name", ["model.safetensors", "predictor.safetensors", "recipe.json"])
def test_parts_of_two_fits_do_not_mix(call, fitted, new, tmp_path, name):
    folder = shutil.copytree(fitted / "numbers", tmp_path / "copy")
    twin = shutil.copytree(fitted / "numbers", tmp_path / "twin")  # of the same columns
    for file in ("model.safetensors", "predictor.safetensors"):
        (SDR if file.startswith("model") else SDRGPRegressor).load(twin / file).set_params(n_components=3).save(
            twin / file
        )
    files = {file: hashlib.sha256((twin / file).read_bytes()).hexdigest() for file in FILES[:2]}
    write_recipe(replace(read_recipe(twin / "recipe.json"), files=files), twin / "recipe.json")
    shutil.copy(twin / name, folder)
    codes = {command: call(command, folder, "new.csv", "-q", "--overwrite") for command in ("transform", "predict")}
    wrong = {"model.safetensors": {"transform"}, "predictor.safetensors": {"predict"}}.get(name, {*codes})
    assert {command for command, (code, *_) in codes.items() if code} == wrong
    assert all("do not belong together" in codes[command][2] for command in wrong)


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_a_report_is_rebuilt_as_it_was(call, fitted, tmp_path, name):
    folder = shutil.copytree(fitted / name, tmp_path / "copy")
    before = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    call("report", folder)
    assert (folder / "report.html").read_bytes() == before


def test_a_report_is_rebuilt_with_classes_that_look_like_numbers_gaps_or_formulas(call, quick, tmp_path):
    np.savez("t.npz", X=np.random.default_rng(0).normal(size=(45, 3)), y=np.array(["01", "None", "=1+1"] * 15))
    call("fit", "t.npz", "--out", "out", "--quiet")
    before = (tmp_path / "out/report.html").read_bytes()
    assert ",=1+1" not in (tmp_path / "out/held_out.csv").read_text()
    assert call("report", "out", "--quiet") == (0, "", "")
    assert (tmp_path / "out/report.html").read_bytes() == before


@pytest.mark.parametrize("task", ["auto", "classification"])
def test_a_report_is_rebuilt_with_words_among_classes_of_numbers(call, tmp_path, task):
    table = rows(63).drop(columns=["price", "dear"]).assign(kind=[*map(str, range(20)), "unknown"] * 3)
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "kind", "--task", task, "--out", "out", "--no-predict", "--quiet")
    before = (tmp_path / "out/report.html").read_bytes()
    assert call("report", "out", "--quiet") == (0, "", "")
    assert (tmp_path / "out/report.html").read_bytes() == before


def test_held_out_predictions_without_the_truth_are_refused(call, fitted, tmp_path):
    folder = shutil.copytree(fitted / "numbers", tmp_path / "copy")
    pd.read_csv(folder / "held_out.csv").drop(columns="true").to_csv(folder / "held_out.csv", index=False)
    code, _, err = call("report", folder)
    assert code == 1 and "no column 'true'; fit again" in err


def test_a_report_is_opened_only_when_asked(call, fitted, tmp_path, monkeypatch):
    folder = shutil.copytree(fitted / "numbers", tmp_path / "copy")
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    call("report", folder)
    call("report", folder, "--open")
    assert opened == [(folder / "report.html").as_uri()]


def test_a_report_of_a_file_that_moved(call, fitted, tmp_path):
    folder = shutil.copytree(fitted / "numbers", tmp_path / "copy")
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["source"]["file"] = str(tmp_path / "gone.csv")
    (folder / "metrics.json").write_text(json.dumps(metrics))
    assert "There is no file" in call("report", folder)[2]
    assert call("report", folder, "--data", fitted / "t.csv")[0] == 0


def test_a_report_of_a_file_that_changed_is_refused(call, fitted, tmp_path):
    rows(60, seed=2).to_csv(tmp_path / "t.csv", index=False)
    code, _, err = call("report", fitted / "numbers", "--data", tmp_path / "t.csv")
    assert code == 1 and "its content has changed" in err


@pytest.mark.parametrize(
    "spoilt",
    [
        "{",
        "{}",
        '{"source": 3}',
        '{"source": {"file": 1, "sha256": 2, "targets": [], "command": 3}}',
        '{"source": {"file": "", "sha256": "", "targets": [], "command": "", "task": [1]}}',
        '{"source": []}',
    ],
)
def test_spoilt_metrics_are_refused(call, fitted, tmp_path, spoilt):
    folder = shutil.copytree(fitted / "numbers", tmp_path / "copy")
    (folder / "metrics.json").write_text(spoilt)
    code, _, err = call("report", folder)
    assert code == 1 and "does not say which file was fitted" in err


@pytest.mark.filterwarnings("ignore:Unlike any row of the fit")
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_folder_in_python_says_what_the_commands_say(fitted, call, kind):
    new = rows(8, seed=3)
    new.loc[2, "size"] = None
    new.to_csv("new.csv", index=False)
    assert call("predict", fitted / kind, "new.csv", "--coverage", 0.8, "-q")[0] == 0
    assert call("transform", fitted / kind, "new.csv", "-q")[0] == 0
    folder = load_folder(fitted / kind)
    named = new.set_index(pd.Index(list("abcdefgh")))
    predicted, placed = folder.predict(named, coverage=0.8), folder.transform(named)
    assert list(predicted.index) == list("abcdefgh")
    for found, file in ((predicted, "predictions.csv"), (placed, "embedding.csv")):
        expected = pd.read_csv(file).drop(columns="row")
        found = found.reset_index(drop=True).astype(expected.dtypes)  # a file has no Int64 with gaps
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Unlike any row of the fit")
def test_a_folder_in_python_warns_of_levels_that_it_does_not_know(fitted, tmp_path):
    with pytest.warns(DataWarning, match=r"'town': 8 rows with levels .*oslo"):
        load_folder(fitted / "numbers").predict(rows(8).assign(town="oslo"))
    with pytest.raises(InvalidInputError, match="nowhere"):
        load_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("command", ["transform", "predict", "score", "report"])
def test_a_terminal_shows_that_a_command_is_at_work(call, fitted, monkeypatch, command):
    monkeypatch.setenv("FORCE_COLOR", "1")
    file = () if command == "report" else (fitted / "t.csv",)
    code, _, err = call(command, fitted / "numbers", *file)
    assert code == 0 and "0:00:0" in err
    again = ("--overwrite",) if command in ("transform", "predict") else ()
    assert call(command, fitted / "numbers", *file, "--quiet", *again)[2] == ""

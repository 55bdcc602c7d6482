"""`distreduce fit`, tried as a new user would."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.messy_table import QUICK, messy
from sklearn.datasets import load_diabetes

from distreduce import SDRGPClassifier
from distreduce.cli import _models
from distreduce.exceptions import AffinityConvergenceWarning, InterruptedFitWarning, SolverConvergenceWarning
from distreduce.tables.recipe import read_recipe


def test_what_was_guessed_is_said(call, tmp_path):
    messy().to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price", *QUICK)
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.strip()}
    assert {name: lines[name] for name in messy().columns[:-1]} == {
        "id": "left out: numbers the rows; --keep 'id' uses it –",
        "size": "number 1",
        "town": "category, 3 levels 3",
        "sold": "date, day.month.year 5",
        "fresh": "true or false 1",
        "owner": "left out: text with 60 values in 60 rows –",
        "planet": "left out: constant (Earth) –",
    }


def test_many_columns_are_one_line_per_kind(call):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 40))).add_prefix("gene ").assign(town="Rome")
    table["y"] = table["gene 0"]
    table.to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "y", *QUICK)
    assert "40: gene 0, gene 1, gene 2, …" in out and "gene 7" not in out


def test_what_to_do_next_is_said(call):
    messy().to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price", "--out", "my result", *QUICK)
    assert "my result/report.html" in out and "distreduce transform 'my result' new.csv" in out


def test_json_is_the_content_of_metrics(call, quick, tmp_path):
    messy().to_csv("t.csv", index=False)
    _, out, err = call("fit", "t.csv", "--target", "price", "--json", "--max-rows", "20")
    said = json.loads(out)
    assert said.pop("folder") == "distreduce-t" and said == json.loads(
        (tmp_path / "distreduce-t/metrics.json").read_text()
    )


def test_quiet_prints_nothing(call):
    messy().to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "--target", "price", "--quiet", *QUICK) == (0, "", "")


def test_the_same_seed_gives_the_same_tables(call, tmp_path):
    messy().to_csv("t.csv", index=False)
    for out in ("one", "two"):
        call("fit", "t.csv", "--target", "price", "--out", out, "--seed", "3", "--max-rows", "30", *QUICK)
    assert (tmp_path / "one/embedding.csv").read_bytes() == (tmp_path / "two/embedding.csv").read_bytes()


def test_the_page_says_of_how_many_rows_its_samples_are(call, tmp_path):
    messy().to_csv("t.csv", index=False)
    page = tmp_path / "distreduce-t/report.html"
    assert call("fit", "t.csv", "--target", "price", "--max-rows", "30", *QUICK)[0] == 0
    written = page.read_text("utf-8")
    assert f"<b>30</b><span>of {len(messy())} rows; " in written
    assert call("report", "distreduce-t")[0] == 0 and page.read_text("utf-8") == written


def test_numbers_beat_no_model_and_the_experts_are_shown(call):
    load_diabetes(as_frame=True).frame.iloc[::2].to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "target", "--json")
    found = json.loads(out)
    scores = found["held_out"]["scores"]
    assert list(scores) == ["SDR-GP", "linear", "trees", "no model"]
    assert scores["SDR-GP"]["r2"] > scores["no model"]["r2"] + 0.2
    assert sum(found["experts"].values()) == pytest.approx(1.0, abs=1e-4)


def test_pure_noise_is_called_noise(call):
    rng = np.random.default_rng(1)
    pd.DataFrame(rng.normal(size=(80, 4))).add_prefix("x").assign(y=rng.normal(size=80)).to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "y", *QUICK)
    assert "Left-out samples show nothing about the target" in " ".join(out.split())


def test_several_targets(call, quick, tmp_path):
    messy(30).assign(rent=lambda t: t["size"] ** 2).to_csv("t.csv", index=False)
    call("fit", "t.csv", "-t", "price", "-t", "rent", "--quiet")
    columns = pd.read_csv(tmp_path / "distreduce-t/held_out.csv").columns
    assert {"true price", "true rent", "mean of price", "q95 of rent"} <= set(columns)


@pytest.mark.parametrize(
    ("name", "column"), [("class", "town"), ("model", "fresh"), ("row", "town"), ("mean", "price")]
)
def test_a_target_may_have_the_name_of_a_column_of_the_tables(call, quick, tmp_path, name, column):
    table = messy(40)
    table.rename(columns={column: name}).to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "--target", name, "--quiet") == (0, "", "")
    held_out = pd.read_csv(tmp_path / "distreduce-t/held_out.csv")
    assert held_out["true"].tolist() == table[column].iloc[held_out["row"]].tolist()
    assert call("report", "distreduce-t", "--quiet") == (0, "", "")


@pytest.mark.parametrize("name", ["part", "row", "prototype", "sdr0"])
def test_a_target_does_not_share_a_heading_of_the_embedding(call, tmp_path, name):
    table = messy(40).rename(columns={"price": name})
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", name, "--quiet", *QUICK)
    heads = (tmp_path / "distreduce-t/embedding.csv").read_text().splitlines()[0].split(",")
    assert heads[:6] == ["row", "part", f"true {name}", "prototype", "sdr0", "sdr1"]
    assert heads[6:] == ["fitted prototype", "fitted sdr0", "fitted sdr1"]
    assert call("report", "distreduce-t", "--quiet") == (0, "", "")


def test_rows_of_the_page_are_numbered_as_in_the_file(call, tmp_path):
    table = messy()
    table.loc[:9, "town"] = None
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "price", "--missing", "drop", *QUICK)
    page = (tmp_path / "distreduce-t/report.html").read_text("utf-8")
    node = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    medoids = [node["details"]["rows"][places[0]] for places in node["details"]["nearest"]]
    expected = pd.read_csv(tmp_path / "distreduce-t/prototypes.csv").set_index("prototype")["medoid"]
    assert medoids == expected.loc[node["prototypes"]["number"]].tolist()


def test_rows_without_a_target_are_placed(call, tmp_path):
    table = messy()
    table.loc[::5, "price"] = np.nan
    table.to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price", *QUICK)
    places = pd.read_csv(tmp_path / "distreduce-t/embedding.csv")
    assert "Rows without a target help to draw the picture: 12." in out and places["sdr0"].notna().all()


def test_classes_may_be_unknown_as_well(call, quick, tmp_path):
    table = messy().assign(kind=lambda t: t["id"] % 3 + 9).astype({"kind": "Int64"})
    table.loc[::5, "kind"] = None
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "kind", "--drop", "id")
    assert SDRGPClassifier.load(tmp_path / "distreduce-t/predictor.safetensors").classes_.tolist() == [9, 10, 11]


def test_words_among_the_numbers_of_a_target_are_said_to_be_missing(call, tmp_path):
    table = messy()
    table["price"] = table["price"].astype(object)
    table.loc[[3, 7], "price"] = "on request"
    table.to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "-t", "price", "-o", "o", *QUICK)
    assert "Target price: regression; 'on request' taken as missing." in " ".join(out.split())


def test_rows_without_a_target_can_be_left_out(call, tmp_path):
    table = messy()
    table.loc[::5, "price"] = np.nan
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "price", "--unlabelled", "drop", *QUICK)
    parts = pd.read_csv(tmp_path / "distreduce-t/embedding.csv")["part"]
    assert parts.value_counts().to_dict() == {"fit": 48, "omitted": 12}


@pytest.mark.parametrize(("way", "parts"), [("impute", {"fit": 60}), ("drop", {"fit": 54, "omitted": 6})])
def test_missing_values_by_option(call, tmp_path, way, parts):
    table = messy()
    table.loc[::10, "town"] = None
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "price", "--missing", way, *QUICK)
    assert pd.read_csv(tmp_path / "distreduce-t/embedding.csv")["part"].value_counts().to_dict() == parts


def test_columns_can_be_called_categories_or_dropped(call, tmp_path):
    messy().assign(zone=lambda t: t["id"] % 3).to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "price", "--category", "zone", "--drop", "size", *QUICK)
    names = read_recipe(tmp_path / "distreduce-t/recipe.json").columns
    assert "zone = 2" in names and "size" not in names


def test_images_of_an_npz(call, tmp_path, rng):
    images = rng.integers(0, 256, (40, 5, 4), dtype=np.uint8)
    np.savez("t.npz", X=images, y=images[:, 0, 0] > 128)
    _, out, _ = call("fit", "t.npz", *QUICK)
    assert "images of 5 × 4" in out and (tmp_path / "distreduce-t/report.html").exists()


def test_parquet(call):
    pytest.importorskip("pyarrow")
    messy().astype({"town": "category"}).assign(sold=pd.Timestamp("2020-01-01")).to_parquet("t.parquet")
    code, out, _ = call("fit", "t.parquet", "--target", "price", *QUICK)
    assert code == 0 and "constant (2020-01-01 00:00:00)" in out


def test_h5ad(call, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata warns about packages of its own
        anndata = pytest.importorskip("anndata")
        cells = anndata.AnnData(rng.normal(size=(40, 6)), obs=pd.DataFrame({"kind": pd.Categorical(list("TB") * 20)}))
        cells.write_h5ad("t.h5ad")
        code, out, _ = call("fit", "t.h5ad", "--target", "kind", *QUICK)
        assert "(--target COLUMN, or target=… in Python). t.h5ad has kind." in call("fit", "t.h5ad", "--overwrite")[2]
    assert code == 0 and "classification, 2 classes" in out


def test_spreadsheets_of_other_countries(call, tmp_path):
    table = messy()
    table.columns = [f" {name.upper()} é " for name in table.columns]
    table.to_csv("t.csv", index=False, sep=";", decimal=",", encoding="utf-16")
    code, out, _ = call("fit", "t.csv", "--target", "PRICE é", *QUICK)
    assert code == 0 and [line.split() for line in out.splitlines() if "SIZE" in line] == [["SIZE", "é", "number", "1"]]


def test_a_large_file_is_drawn_from_and_all_rows_are_placed(call, tmp_path, rng):
    n = 50_000  # more than are read at once
    table = pd.DataFrame(rng.normal(size=(n, 3)).round(3), columns=list("abc")).assign(y=lambda t: t["a"] > 0)
    table.to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "y", "--max-rows", "100", *QUICK)
    places = pd.read_csv(tmp_path / "distreduce-t/embedding.csv")
    assert "100 of 50,000 rows" in out
    assert places["part"].value_counts().to_dict() == {"placed": n - 100, "fit": 100} and places["sdr1"].notna().all()


def test_a_picture_takes_every_row_of_some_thousand(call, tmp_path, rng):
    table = pd.DataFrame(rng.normal(size=(3100, 3)).round(3), columns=list("abc")).assign(y=lambda t: t["a"] > 0)
    table.to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "--target", "y", "--no-predict", "--prototypes", "5")[0] == 0
    assert (pd.read_csv(tmp_path / "distreduce-t/embedding.csv")["part"] == "fit").all()


@pytest.mark.parametrize("options", [{"group": "a"}, {"time": "a"}, {"prototypes": 0}])
def test_a_picture_takes_fewer_rows_where_all_pairs_are_stored(options):
    assert _models.FitOptions(**options).picture_rows == 3000
    assert _models.FitOptions(**options, max_rows=500).picture_rows == 500


@pytest.mark.parametrize("target", ["price", "town"])
def test_few_rows_are_compared_with_simple_models(call, quick, target):
    messy(11)[["size", "town", "fresh", "price"]].to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", target, "--json")
    assert "linear" in json.loads(out)["held_out"]["scores"]


def test_three_rows_are_enough_and_said_to_be_few(call, tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2.5\n4,3.5\n5,1.5\n")
    code, out, _ = call("fit", "t.csv", "--target", "y")
    assert code == 0 and "Only 3 rows have a target." in out


def test_a_checkpoint_is_kept_and_resumed_from(call):
    messy().to_csv("t.csv", index=False)
    for folder in ("one", "two"):
        code, _, err = call("fit", "t.csv", "--target", "price", "--out", folder, "--checkpoint", "state", *QUICK)
        assert code == 0, err
    assert Path("one/embedding.csv").read_bytes() == Path("two/embedding.csv").read_bytes()


def test_a_checkpoint_of_another_fit_is_one_sentence(call):
    messy().to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "price", "--out", "one", "--checkpoint", "state", *QUICK)
    code, _, err = call("fit", "t.csv", "--target", "price", "--seed", "1", "--checkpoint", "state", *QUICK)
    assert code == 1 and "Delete it" in err and err.count("\n") == 1


def test_one_prototype_per_row_comes_without_advice_that_nobody_can_follow(call):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    pd.DataFrame(X).add_prefix("x").assign(y=X[:, 0] * X[:, 1]).to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "y", "--json", "--no-predict", "--prototypes", "0")
    assert json.loads(out)["picture"]["converged"] and "max_iter" not in out


@pytest.mark.parametrize(("options", "does"), [((), "completes it"), (("--checkpoint", "s"), "resumes from s")])
def test_what_a_model_warns_of_is_said_in_words_of_the_command_line(call, monkeypatch, options, does):
    whole = _models.SDR.fit

    def interrupted(self, X, y, sample_weight=None, groups=None):
        whole(self, X, y, sample_weight)
        for category in (InterruptedFitWarning, SolverConvergenceWarning, AffinityConvergenceWarning):
            warnings.warn("Raise max_iter.", category, stacklevel=1)

    monkeypatch.setattr(_models.SDR, "fit", interrupted)
    messy().to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price", "--json", *options, *QUICK)
    notes = " ".join(json.loads(out)["notes"])
    assert "max_iter" not in notes and "limit of iterations" in notes and "--perplexity" in notes
    assert f"same command with --overwrite {does}." in notes


def test_the_page_shows_what_the_fit_had_to_say_about_the_data(call, quick):
    table = messy().assign(copy=lambda t: 3 * t["price"] + 1)
    table.loc[[3, 4], "size"] = None
    pd.concat([table, table[:4]]).to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "-t", "price", "--out", "out", "-q")[0] == 0
    page = Path("out/report.html").read_text("utf-8")
    for words in (
        "alone tells the target",
        "Missing cells are filled",
        "4 rows with features and target of another: read as copies",
    ):
        assert words in page
    written = Path("out/report.html").read_bytes()
    assert call("report", "out")[0] == 0
    assert Path("out/report.html").read_bytes() == written


def test_without_a_predictor_copies_are_said_and_columns_without_names_have_numbers(call):
    table = messy()
    pd.concat([table, table[:4]]).to_csv("t.csv", index=False, header=False)
    code, out, _ = call("fit", "t.csv", "--no-header", "-t", "8", "--drop", "2", "--json", *QUICK)
    assert code == 0
    said = json.loads(out)
    assert said["targets"] == ["column 8"] and "left out" in said["columns"][1]["taken_as"]
    assert "4 rows with features and target of another: read as copies. They are left out together" in out


def test_names_of_columns_do_not_steer_the_terminal(call):
    steer = "\x1b]0;title\x07\x1b[2J\u202e\u009b31m"
    table = messy()[["size", "town", "price"]].set_axis([f"{steer}size", "town", f"price{steer}"], axis=1)
    table.to_parquet("t.parquet")
    table.assign(**{f"more{steer}": 1}).to_parquet("new.parquet")
    said = call("fit", "t.parquet", "-t", f"price{steer}", *QUICK), call("transform", "distreduce-t", "new.parquet")
    assert [code for code, *_ in said] == [0, 0]
    assert not set("\x1b\x07\u202e\u009b") & set("".join(out + err for _, out, err in said))

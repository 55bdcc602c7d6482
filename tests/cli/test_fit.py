"""`distreduce fit`, tried as a new user would."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine

from distreduce import SDR, SDRGPClassifier
from distreduce.cli import _models, _study
from distreduce.cli._names import FILES
from distreduce.cli._study import draw_rows
from distreduce.cli.main import main
from distreduce.exceptions import AffinityConvergenceWarning, InterruptedFitWarning, SolverConvergenceWarning
from distreduce.tables.prepare import prepare
from distreduce.tables.recipe_file import read_recipe

QUICK = ("--no-predict", "--prototypes", "4")


def messy(n=60):
    """A number, a category, a date, a switch, an identifier, a constant, and a target that follows the first two."""
    rng = np.random.default_rng(0)
    size, town = rng.normal(size=n).round(3), rng.choice(["Rome", "Oslo", "Bern"], n)
    return pd.DataFrame(
        {
            "id": range(n),
            "size": size,
            "town": town,
            "sold": pd.date_range("2019-01-01", periods=n, freq="20D").strftime("%d.%m.%Y"),
            "fresh": rng.random(n) > 0.5,
            "owner": [f"person {i}" for i in range(n)],
            "planet": "Earth",
            "price": (2 * size + (town == "Oslo") + 0.1 * rng.normal(size=n)).round(3),
        }
    )


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """``call("fit", "t.csv")`` returns exit code, standard output and standard error, from an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str):
        monkeypatch.setattr(sys, "argv", ["distreduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder fitted to wine with a class of a single row, and the rows."""
    where = tmp_path_factory.mktemp("fitted")
    table = load_wine(as_frame=True).frame.iloc[::2].reset_index(drop=True)
    table["target"] = np.array(["barolo", "grignolino", "barbera"])[table["target"]]
    table.loc[7, "target"] = "lone"
    table.to_csv(where / "wine.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
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


def test_what_was_guessed_is_said(call, tmp_path):
    messy().to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price", *QUICK)
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.strip()}
    assert {name: lines[name] for name in messy().columns[:-1]} == {
        "id": "left out: counts rows –",
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
    assert "The features say nothing about the target" in " ".join(out.split())


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
    n = 200_000
    table = pd.DataFrame(rng.normal(size=(n, 3)).round(3), columns=list("abc")).assign(y=lambda t: t["a"] > 0)
    table.to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "y", "--max-rows", "100", *QUICK)
    places = pd.read_csv(tmp_path / "distreduce-t/embedding.csv")
    assert "100 of 200,000 rows" in out
    assert places["part"].value_counts().to_dict() == {"placed": n - 100, "fit": 100} and places["sdr1"].notna().all()


GOOD = "a,b,y\n" + "".join(f"{i * i % 7},{i % 5 / 3},{i / 3}\n" for i in range(20))
BINARY = bytes(range(256)) * 20


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("t.csv", GOOD, ["-t", "z"], "t.csv has no column 'z'. It has a, b, y."),
        ("t.csv", GOOD.replace("y", "price"), ["-t", "prise"], "Did you mean 'price'?"),
        ("t.csv", GOOD, [], "to predict (--target COLUMN, or target=… in Python). It has a, b, y."),
        ("t.csv", "", ["-t", "y"], "t.csv is empty."),
        ("t.csv", "a,b,y\n", ["-t", "y"], "t.csv has column names but no rows."),
        ("t.csv", "y\n1\n2\n", ["-t", "y"], "one column"),
        ("t.csv", BINARY, ["-t", "y"], "looks like a binary file"),
        ("t.csv", b"PK\x03\x04" + BINARY, ["-t", "y"], "Excel workbook"),
        ("t.doc", BINARY, ["-t", "y"], "ends in none of"),
        ("t.parquet", BINARY, ["-t", "y"], "cannot be read as parquet"),
        ("t.npz", BINARY, [], "not a zip archive"),
        ("t.csv", "a,b,y\n1,2,3\n4,5,3\n", ["-t", "y"], "single value"),
        ("t.csv", "a,b,y\n1,2,u\n4,5,u\n", ["-t", "y"], "single value ('u')"),
        ("t.csv", "a,b,y\n1,2,\n4,5,\n", ["-t", "y"], "no values at all"),
        ("t.csv", "a,b,y\n1,2,5\n1,2,6\n", ["-t", "y"], "No column of t.csv can be used"),
        ("t.csv", GOOD + ",1,2\n", ["-t", "y", "--missing", "refuse"], "missing values in 'a' (1)"),
        ("t.csv", GOOD + "1,2,3,4\n", ["-t", "y"], "line 22 has 4 cells, but there are 3 columns"),
        ("t.csv", GOOD, ["-t", "y", "--drop", "c"], "no feature 'c'"),
        ("t.csv", GOOD, ["-t", "y", "--prototypes", "30"], "--prototypes 30 is more than the 20 rows"),
        ("t.csv", GOOD, ["-t", "y", "--perplexity", "30"], "--perplexity 30 must be below"),
        ("t.csv", GOOD, ["-t", "z", "--checkpoint", "no/where"], "checkpoint='no/where' cannot be written"),
        ("t.csv", GOOD, ["-t", "z", "--checkpoint", "t.csv"], "Cannot resume from 't.csv'"),
        ("t.csv", GOOD, ["-t", "y", "--out", "no/where"], "no/where cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_leaves_nothing(call, tmp_path, name, content, options, said):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, _, err = call("fit", name, *options)
    assert (code, err.count("\n")) == (1, 1) and err.startswith("distreduce: ") and said in err
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(("name", "said"), [("none.csv", "There is no file none.csv"), (".", "is a folder")])
def test_a_path_that_is_not_a_table(call, name, said):
    code, _, err = call("fit", name, "--target", "y")
    assert code == 1 and said in err


@pytest.mark.parametrize(
    "options", [["--missing", "guess"], ["--prototypes", "1"], ["--max-rows", "5"], ["--seed", "-1"], ["--eta", "-1"]]
)
def test_wrong_usage_is_exit_code_2(call, tmp_path, options):
    (tmp_path / "t.csv").write_text(GOOD)
    assert call("fit", "t.csv", "--target", "y", *options)[0] == 2


def test_an_earlier_result_needs_overwrite(call, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    call("fit", "t.csv", "--target", "y", "--quiet", *QUICK)
    before = (tmp_path / "distreduce-t/metrics.json").read_bytes()
    code, _, err = call("fit", "t.csv", "--target", "y", "--components", "1", *QUICK)
    assert code == 1 and "--overwrite" in err and (tmp_path / "distreduce-t/metrics.json").read_bytes() == before


def test_overwrite_replaces_the_earlier_result(call, tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    call("fit", "t.csv", "--target", "y", "--quiet", *QUICK)
    call("fit", "t.csv", "--target", "y", "--components", "1", "--overwrite", *QUICK)
    assert SDR.load(tmp_path / "distreduce-t/model.safetensors").n_components == 1


def test_a_fit_that_breaks_leaves_the_earlier_result(call, tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(GOOD)
    call("fit", "t.csv", "--target", "y", "--quiet", *QUICK)
    before = {path.name: path.read_bytes() for path in (tmp_path / "distreduce-t").iterdir()}

    def fail(*_):
        raise MemoryError("Unable to allocate 10 GiB")

    monkeypatch.setattr("distreduce.cli._study.fit_picture", fail)
    code, _, err = call("fit", "t.csv", "--target", "y", "--overwrite", *QUICK)
    assert code == 1 and "lower --max-rows" in err
    assert {path.name: path.read_bytes() for path in (tmp_path / "distreduce-t").iterdir()} == before


@pytest.mark.parametrize("target", ["price", "town"])
def test_few_rows_are_compared_with_simple_models(call, quick, target):
    messy(11)[["size", "town", "fresh", "price"]].to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", target, "--json")
    assert "linear" in json.loads(out)["held_out"]["scores"]


@pytest.mark.parametrize("size", [5, 20, 59, 60])
def test_rows_are_drawn_in_the_shares_of_their_classes(size):
    labels = np.array(["lone"] + ["few"] * 9 + ["many"] * 50, dtype=object)
    rows = draw_rows(np.arange(60), labels, size, seed=0)
    counts = pd.Series(labels[rows]).value_counts()
    assert len(set(rows)) == size and counts["lone"] == 1
    assert abs(counts["few"] - (size - 1) * 9 / 59) <= 1


def test_rows_without_a_label_are_drawn_too():
    labels = np.array([None] * 30 + ["a"] * 15 + ["b"] * 15, dtype=object)
    assert np.mean(draw_rows(np.arange(60), labels, 20, seed=0) < 30) == 0.5


def test_few_rows_have_no_held_out_part(call, quick, monkeypatch):
    monkeypatch.setattr(_study, "MIN_ROWS", 100)
    messy(20).to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price")
    assert "no held-out part" in out and "Held-out scores" not in out


def test_three_rows_are_enough(call, tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2.5\n4,3.5\n5,1.5\n")
    assert call("fit", "t.csv", "--target", "y")[0] == 0


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

    def interrupted(self, X, y):
        whole(self, X, y)
        for category in (InterruptedFitWarning, SolverConvergenceWarning, AffinityConvergenceWarning):
            warnings.warn("Raise max_iter.", category, stacklevel=1)

    monkeypatch.setattr(_models.SDR, "fit", interrupted)
    messy().to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price", "--json", *options, *QUICK)
    notes = " ".join(json.loads(out)["notes"])
    assert "max_iter" not in notes and "limit of iterations" in notes and "--perplexity" in notes
    assert f"same command with --overwrite {does}." in notes


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_copies_of_a_row_are_on_one_side_of_the_split(tmp_path, task):
    """Else every model knows the answers of the held-out rows: pure noise scored R² 0.4."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")).assign(y=rng.normal(size=60))
    table["y"] = table["y"] if task == "regression" else np.where(table["y"] > 0, "yes", "no")
    pd.concat([table, table]).sample(frac=1, random_state=0).to_csv(tmp_path / "t.csv", index=False)
    data = prepare(tmp_path / "t.csv", ["y"])
    train, test = _study._split_rows(data, _models.FitOptions())
    rows = [set(map(tuple, data.X[part])) for part in (train, test)]
    assert not rows[0] & rows[1] and len(train) + len(test) == 120 and len(test) == 24
    single = prepare_rows(tmp_path, table)
    assert len(_study._split_rows(single, _models.FitOptions())[1]) == 12


def prepare_rows(folder, table):
    table.to_csv(folder / "single.csv", index=False)
    return prepare(folder / "single.csv", ["y"])


def test_the_page_shows_what_the_fit_had_to_say_about_the_data(call):
    table = messy().assign(copy=lambda t: 3 * t["price"] + 1)
    table.loc[[3, 4], "size"] = None
    pd.concat([table, table[:4]]).to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "-t", "price", "--out", "out", "-q")[0] == 0
    page = Path("out/report.html").read_text("utf-8")
    for words in ("alone tells the target", "Missing cells are filled", "4 rows repeat others"):
        assert words in page
    written = Path("out/report.html").read_bytes()
    assert call("report", "out")[0] == 0
    assert Path("out/report.html").read_bytes() == written

"""Which rows `distreduce fit` holds out: at random, whole groups, the latest; and weights of rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.messy_table import QUICK, messy
from sklearn.metrics import r2_score

from distreduce import SDR, SDRGPClassifier, SDRGPRegressor
from distreduce.cli import _models, _split, _study
from distreduce.cli._split import draw_rows, split_rows
from distreduce.estimators import _auto
from distreduce.gp import _refit
from distreduce.mapping import folds
from distreduce.metrics.held_out import r2_interval
from distreduce.tables.aside import Aside, AsideValues, read_weights
from distreduce.tables.prepare import prepare


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
    monkeypatch.setattr(_split, "MIN_ROWS", 100)
    messy(20).to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "--target", "price")
    assert "no held-out part" in out and "Held-out scores" not in out


def test_the_scored_predictor_learns_from_the_held_out_rows_afterwards(call, quick, monkeypatch):
    """The scores are those of a model that has not seen these rows, and the one that is kept has."""
    monkeypatch.setattr(_study, "ENOUGH_SEEN", 50)
    monkeypatch.setattr(_refit, "TAKES_PART", 2.0)  # keep the reduction, which shows that nothing else is fitted again
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.sin(2 * X[:, 0])}).to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "y", "--out", "out", "--prototypes", "5")
    held_out = pd.read_csv("out/held_out.csv").query("model == 'SDR-GP'").set_index("row")
    model, rows = SDRGPRegressor.load("out/predictor.safetensors"), held_out.index
    recipe = prepare(Path("t.csv"), ["y"])
    assert len(model.reduction_.embedding_left_out_) == 96
    misses = [np.abs(p - np.sin(2 * X[rows, 0])).mean() for p in (held_out["mean"], model.predict(recipe.X[rows]))]
    assert misses[1] < 0.5 * misses[0]


def test_a_class_of_held_out_rows_alone_is_known_to_the_predictor(call, quick, monkeypatch):
    monkeypatch.setattr(_study, "ENOUGH_SEEN", 50)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": rng.normal(size=120), "t": np.arange(120), "y": np.repeat(["old", "older", "new"], [80, 25, 15])}
    )
    table.to_csv("t.csv", index=False)
    call("fit", "t.csv", "--target", "y", "--time", "t", "--out", "out", "--prototypes", "6")
    assert set(SDRGPClassifier.load("out/predictor.safetensors").classes_) == {"old", "older", "new"}


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_copies_of_a_row_are_on_one_side_of_the_split(tmp_path, task):
    """Else every model knows the answers of the held-out rows: pure noise scored R² 0.4."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")).assign(y=rng.normal(size=60))
    table["y"] = table["y"] if task == "regression" else np.where(table["y"] > 0, "yes", "no")
    pd.concat([table, table]).sample(frac=1, random_state=0).to_csv(tmp_path / "t.csv", index=False)
    data = prepare(tmp_path / "t.csv", ["y"])
    train, test, _ = split_rows(data, _models.FitOptions())
    rows = [set(map(tuple, data.X[part])) for part in (train, test)]
    assert not rows[0] & rows[1] and len(train) + len(test) == 120 and len(test) == 24
    single = prepare_rows(tmp_path, table)
    assert len(split_rows(single, _models.FitOptions())[1]) == 12


def test_repeated_measurements_are_drawn_one_by_one(tmp_path):
    """Kept together by (x, y), one label of each x went to either side, and accuracy was 0.09."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(7, size=300), "b": rng.integers(2, size=300)})
    table["y"] = np.where(rng.random(300) < 0.2 + 0.6 * (table["a"] > 3), "yes", "no")
    data = prepare_rows(tmp_path, table)
    train, test, _ = split_rows(data, _models.FitOptions())
    rows = [set(map(tuple, data.X[part])) for part in (train, test)]
    assert rows[0] == rows[1] and len(test) == 60
    (said,) = _split.describe_repeats(data, np.arange(300))
    assert "read as repeated measurements, not as copies. They are held out one by one." in said


def test_numbers_are_held_out_in_equal_shares_of_their_range(tmp_path):
    """By chance alone, held-out rows had another spread than the rest, and the R² of few rows scattered more."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "y"])
    data = prepare_rows(tmp_path, table)
    for seed in range(3):
        _, test, _ = split_rows(data, _models.FitOptions(seed=seed))
        assert (np.bincount(table["y"].rank()[test].astype(int).sub(1) // 10) == 2).all()


def prepare_rows(folder, table):
    table.to_csv(folder / "single.csv", index=False)
    return prepare(folder / "single.csv", ["y"])


def visits(n=120):
    """Several rows per patient, each with a date; the target is the patient's own number, which no other tells."""
    rng = np.random.default_rng(0)
    patient = rng.integers(0, 15, n)
    return pd.DataFrame(
        {
            "patient": [f"p{number:02}" for number in patient],
            "day": pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(n), unit="D")).astype(str),
            "age": patient % 7 + rng.normal(0, 0.01, n),
            "sex": rng.choice(["f", "m"], n),
            "w": rng.integers(0, 4, n),
            "y": rng.normal(size=15)[patient] + rng.normal(0, 0.05, n),
        }
    )


def split_of(tmp_path, table, **names):
    table.to_csv(tmp_path / "t.csv", index=False)
    data = prepare(tmp_path / "t.csv", ["y"], aside=Aside(**names))
    return data, *split_rows(data, _models.FitOptions(**names))


def test_no_group_is_in_both_parts(tmp_path):
    table = visits()
    data, train, test, how = split_of(tmp_path, table, group="patient")
    assert not set(table["patient"][train]) & set(table["patient"][test])
    assert len(train) + len(test) == 120 and 10 <= len(test) <= 40
    assert how == f"They are {table['patient'][test].nunique()} whole groups of patient: no group is in both parts."
    assert "patient" not in " ".join(data.recipe.columns)


def test_groups_that_share_a_copy_of_a_row_stay_together(tmp_path):
    table = visits()
    table = pd.concat([table, table[:1].assign(patient="p99"), table[:1].assign(patient="p98")], ignore_index=True)
    for seed in range(5):
        table.to_csv(tmp_path / "t.csv", index=False)
        data = prepare(tmp_path / "t.csv", ["y"], aside=Aside(group="patient"))
        train, _, _ = split_rows(data, _models.FitOptions(group="patient", seed=seed))
        assert len({row in train for row in (0, 120, 121)}) == 1


def test_the_latest_rows_are_held_out(tmp_path):
    table = visits()
    _, train, test, how = split_of(tmp_path, table, time="day")
    assert len(test) == 24 and table["day"][train].max() < table["day"][test].min()
    assert how == "They are the latest by day: every training row is earlier."
    table["day"] = np.arange(120) // 60  # a tie across the border
    _, train, test, _ = split_of(tmp_path, table, time="day")
    assert len(test) == 60 and table["day"][train].max() < table["day"][test].min()


def test_models_leave_out_what_the_split_holds_out(tmp_path):
    """Groups and parts of time leave together inside the models, too."""
    table = visits()
    data, train, _, _ = split_of(tmp_path, table, group="patient")
    blocks = _models.take_blocks(data, train)
    together = pd.crosstab(blocks, table["patient"][train].to_numpy()) > 0
    assert (together.sum(axis=0) == 1).all() and (together.sum(axis=1) == 1).all()
    data, train, _, _ = split_of(tmp_path, table, time="day")
    order = np.argsort(table["day"][train].to_numpy())
    blocks = np.asarray(_models.take_blocks(data, train))[order]
    assert (np.diff(blocks) >= 0).all() and len(np.unique(blocks)) == 8
    one = table.assign(day=np.arange(120) // 100)
    data, train, _, _ = split_of(tmp_path, one, time="day")
    assert _models.take_blocks(data, train) is None  # a single time cannot be left out


def test_a_leak_by_groups_shows_in_the_scores_and_the_page_says_how_rows_were_held_out(call, quick):
    """At random, the same patients are in both parts, and the score is one of recognising them."""
    visits().to_csv("t.csv", index=False)
    options = ("fit", "t.csv", "-t", "y", "--drop", "day", "--drop", "w")
    _, drawn, _ = call(*options, "--drop", "patient", "--json", "--out", "random")
    _, out, _ = call(*options, "--group", "patient", "--out", "groups")
    r2 = [json.loads(Path(f"{name}/metrics.json").read_text())["held_out"]["scores"]["SDR-GP"]["r2"]
          for name in ("random", "groups")]  # fmt: skip
    assert json.loads(drawn)["held_out"]["how"] == "They were drawn at random." and r2[0] > r2[1] + 0.3
    said = " ".join(out.split())
    # Visits of few patients are few: rows of a group share a number, and the interval counts groups.
    held = pd.read_csv("groups/held_out.csv").query("model == 'SDR-GP'")
    assert (held["group"].nunique() == visits()["patient"][held["row"]].nunique()) and "independent groups)" in said
    found = json.loads(Path("groups/metrics.json").read_text())["held_out"]["scores"]["SDR-GP"]
    ends = r2_interval(held["true"], held["mean"], None, held["group"])
    assert (found["low_95"], found["high_95"]) == pytest.approx(ends, rel=1e-5)
    # The map recognises patients, but patients are left out as a whole: it says nothing about new ones.
    assert "whole groups of patient" in said and "What you see holds" not in said
    page = Path("groups/report.html").read_bytes()
    assert b"whole groups of patient: no group is in both parts." in page
    assert call("report", "groups", "-q")[0] == 0 and Path("groups/report.html").read_bytes() == page
    assert call("predict", "groups", "t.csv", "-q")[0] == 0  # also files without the column
    visits().drop(columns="patient").to_csv("new.csv", index=False)
    assert call("predict", "groups", "new.csv", "-q", "--overwrite")[0] == 0


def test_a_weight_of_two_is_the_row_twice(call, quick, monkeypatch):
    for module in (folds, _auto):  # with two folds, pictures of few rows depend on which rows are drawn
        monkeypatch.setattr(module, "FOLDS", 5)
    table = visits(60).drop(columns=["patient", "day"])
    table.to_csv("weighted.csv", index=False)
    table.loc[table.index.repeat(table["w"])].drop(columns="w").to_csv("repeated.csv", index=False)
    options = ("--quiet", "--test-size", "0", "--prototypes", "6")
    assert call("fit", "weighted.csv", "-t", "y", "--weights", "w", *options)[0] == 0
    assert call("fit", "repeated.csv", "-t", "y", *options)[0] == 0
    found = [SDRGPRegressor.load(f"distreduce-{name}/predictor.safetensors") for name in ("weighted", "repeated")]
    scale = [model.target_scale_.mean[0] for model in found]
    assert scale[0] == pytest.approx(scale[1]) != pytest.approx(table["y"].mean())
    pictures = [SDR.load(f"distreduce-{name}/model.safetensors") for name in ("weighted", "repeated")]
    heaviest = [np.sort(model.prototype_weights_) for model in pictures]
    np.testing.assert_allclose(heaviest[0], heaviest[1], atol=0.02)
    page = Path("distreduce-weighted/report.html").read_bytes()
    assert call("report", "distreduce-weighted", "-q")[0] == 0
    assert Path("distreduce-weighted/report.html").read_bytes() == page


def test_copies_with_noise_are_on_one_side_of_the_split(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 5)), 3, axis=0)
    table = pd.DataFrame(X + 1e-3 * rng.normal(size=X.shape), columns=list("abcde"))
    table.assign(y=np.repeat(rng.integers(3, size=60), 3)).to_csv(tmp_path / "t.csv", index=False)
    data = prepare(tmp_path / "t.csv", ["y"], task="classification")
    searches = []
    search = folds.find_near_copies
    monkeypatch.setattr(folds, "find_near_copies", lambda features: searches.append(1) or search(features))
    train, test, _ = split_rows(data, _models.FitOptions())
    assert len(test) > 20 and not set(train // 3) & set(test // 3)
    assert "or nearly so: read as copies" in _split.describe_repeats(data, np.arange(180))[0]
    assert len(np.unique(_split.find_units(data, test))) == len(test) // 3
    assert len(searches) == 1  # of all distances, which takes its time


@pytest.mark.parametrize(
    ("id_column", "said"),
    [
        (None, "Rows, counted from 0: 40 (like 0), 41 (like 1), 42 (like 2), …"),
        ("name", "By 'name': 'n40' (like 'n0'), 'n41' (like 'n1'), 'n42' (like 'n2'), …"),
    ],
)
def test_copies_are_named(tmp_path, id_column, said):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).assign(y=rng.normal(size=40))
    table = pd.concat([table, table[:4]]).assign(name=[f"n{row}" for row in range(44)])
    table.to_csv(tmp_path / "t.csv", index=False)
    data = prepare(tmp_path / "t.csv", ["y"], id_column=id_column)
    assert _split.describe_repeats(data, np.arange(44))[0].endswith(f"the answer. {said}")


def test_weights_with_fractions_have_a_mean_of_one():
    column = pd.Series([0.0, 120.5, 241.0, 361.5], name="w")
    np.testing.assert_allclose(read_weights(column), [0.0, 0.5, 1.0, 1.5])
    aside = Aside(weights="w")
    assert "scaled to a mean of one" in AsideValues.read({"w": column}, aside).notes(aside)[0]
    assert "6 in all" in AsideValues.read({"w": pd.Series([1, 2, 3])}, aside).notes(aside)[0]


@pytest.mark.parametrize("target", ["y", "sex"])
def test_every_model_is_fitted_and_scored_with_the_weights(call, quick, target):
    visits().to_csv("t.csv", index=False)
    code, out, err = call("fit", "t.csv", "-t", target, "--weights", "w", "--drop", "patient", "--json")
    assert code == 0, err
    scores, page = json.loads(out)["held_out"]["scores"], Path("distreduce-t/report.html").read_text()
    # By hand: every held-out row as often as its weight says.
    held = pd.read_csv("distreduce-t/held_out.csv")
    held = held.loc[held.index.repeat(held["weight"])]
    for name, part in held.groupby("model"):
        if target == "sex":
            expected, key, text = (part["class"] == part["true"]).mean(), "accuracy", "with accuracy {:.2f}"
        else:
            expected, key, text = r2_score(part["true"], part["mean"]), "r2", "(R² {:.2f}, 95 %"
        assert scores[name][key] == pytest.approx(expected, rel=1e-5)
        if name == "SDR-GP":
            assert text.format(expected).replace("-", "−") in page
    assert "Rows count by their weights in all scores" in page
    assert call("report", "distreduce-t", "-q")[0] == 0 and Path("distreduce-t/report.html").read_text() == page
    # New rows are scored alike: a weight of two is the row twice.
    table = visits(60)
    table.to_csv("new.csv", index=False)
    table.loc[table.index.repeat(table["w"])].drop(columns="w").to_csv("repeated.csv", index=False)
    weighted, repeated = (call("score", "distreduce-t", name, "--json") for name in ("new.csv", "repeated.csv"))
    found, again = (json.loads(each[1])["scores"] for each in (weighted, repeated))
    for model in found:
        # Copies are drawn one by one, so that they bring less of it, and count as more rows than there are.
        assert found[model].pop("ece_by_chance", 0) >= again[model].pop("ece_by_chance", 0)
        assert found[model].pop("low_95") <= again[model].pop("low_95")
        assert found[model].pop("high_95") >= again[model].pop("high_95")
        assert found[model] == pytest.approx(again[model], rel=1e-6, abs=1e-12)
    said = call("score", "distreduce-t", "repeated.csv")[2]
    assert "has no column 'w', the weights of the fit: every row counts once." in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--group", "patiant"), "has no column 'patiant'. Did you mean 'patient'?"),
        (("--group", "y"), "--group 'y' is the target; name another column."),
        (("--group", "day"), "--group 'day' has another value in every row"),
        (("--group", "one"), "--group 'one' has 1 value: name a column of two."),
        (("--time", "sex"), "--time 'sex' holds neither dates nor numbers"),
        (("--time", "gaps"), "--time 'gaps' is empty in 1 row; fill the cells"),
        (("--weights", "below"), "--weights 'below' is negative or empty in 1 row"),
        (("--weights", "zero"), "--weights 'zero' is zero in every row"),
        (("--weights", "sex"), "Column 'sex' should hold numbers"),
        (("--group", "patient", "--time", "day"), "by --group or by --time, not by both"),
    ],
)
def test_columns_that_cannot_split_or_weigh_are_refused(call, options, said):
    table = visits(40).assign(one="a", gaps=range(40), below=1, zero=0)
    table["gaps"] = table["gaps"].where(table["gaps"] != 5)
    table.loc[3, "below"] = -1
    table.to_csv("t.csv", index=False)
    code, _, err = call("fit", "t.csv", "-t", "y", *options)
    assert code == 1 and said in err and err.count("\n") == 1
    assert not Path("distreduce-t").exists()


@pytest.mark.parametrize(
    "options",
    [("--group", "patient", "--no-predict"), ("--time", "day", "--test-size", "0"), ("--expert", "svm"),
     ("--expert", "none", "--expert", "linear")],
)  # fmt: skip
def test_options_that_contradict_each_other_are_exit_code_2(call, options):
    visits(40).to_csv("t.csv", index=False)
    assert call("fit", "t.csv", "-t", "y", *options)[0] == 2


@pytest.mark.parametrize(("options", "others"), [(("none",), set()), (("linear", "forest"), {"linear", "forest"})])
def test_experts_are_those_that_were_asked_for(call, options, others):
    visits(30).to_csv("t.csv", index=False)
    asked = [word for name in options for word in ("--expert", name)]
    _, out, _ = call("fit", "t.csv", "-t", "y", "--group", "patient", "--test-size", "0.3", "--json", *asked)
    assert set(json.loads(out)["experts"]) - {"embedding", "inputs", "rough_inputs", "isotropic"} == others
    assert json.loads(out)["choices"]["experts"] == [name for name in options if name != "none"]


def test_numbers_of_rows_are_no_features_unless_they_are_kept(call):
    table = visits(40).drop(columns=["patient", "day", "w"])
    table.insert(0, "customer", 100_000 + 7 * np.arange(40))
    table.insert(1, "OrderID", np.random.default_rng(1).permutation(900)[:40])
    table.insert(2, "visits", np.random.default_rng(2).permutation(900)[:40])
    table.to_csv("t.csv", index=False)
    _, out, _ = call("fit", "t.csv", "-t", "y", "--out", "a", *QUICK)
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.strip()}
    assert lines["customer"] == "left out: numbers the rows; --keep 'customer' uses it –"
    assert lines["OrderID"] == "left out: numbers the rows; --keep 'OrderID' uses it –"
    assert lines["visits"] == "number 1"
    _, out, _ = call("fit", "t.csv", "-t", "y", "--out", "b", "--keep", "customer", *QUICK)
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.strip()}
    assert lines["customer"] == "number 1"

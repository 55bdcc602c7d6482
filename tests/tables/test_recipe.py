"""From columns to X: scikit-learn's own transformers are the oracle."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from distreduce.exceptions import InvalidInputError
from distreduce.tables.aside import Aside
from distreduce.tables.findings import ALL_UNKNOWN, Findings
from distreduce.tables.prepare import prepare
from distreduce.tables.recipe import learn_recipe, read_recipe, write_recipe


@pytest.fixture
def table(rng):
    n = 40
    return pd.DataFrame(
        {
            "size": rng.normal(5, 3, n),
            "town": rng.choice(["Rome", "Oslo", "Bern"], n),
            "new": rng.random(n) > 0.5,
            "day": pd.date_range("2020-01-01", periods=n, freq="2D").strftime("%Y-%m-%d"),
        }
    )


def learn(table, **options):
    return learn_recipe(table, ["y"], "regression", "t.csv", **options)


def test_numbers_are_scaled_as_by_standard_scaler(table):
    X, _ = learn(table[["size"]]).matrix(table, "t.csv")
    assert np.allclose(X, StandardScaler().fit_transform(table[["size"]]))


def test_categories_are_those_of_one_hot_encoder(table):
    X, _ = learn(table[["town"]]).matrix(table, "t.csv")
    assert np.array_equal(X, OneHotEncoder(sparse_output=False).fit_transform(table[["town"]]))


def test_rare_levels_share_a_column(rng):
    table = pd.DataFrame({"c": [f"level {i % 35}" for i in range(105)] + [f"level {i}" for i in range(30)]})
    X, _ = learn(table).matrix(table, "t.csv")
    oracle = OneHotEncoder(sparse_output=False, max_categories=31).fit_transform(table)
    assert np.array_equal(np.sort(X.sum(axis=0)), np.sort(oracle.sum(axis=0)))


def test_imputed_numbers_are_those_of_simple_imputer(table):
    table.loc[[3, 9], "size"] = np.nan
    X, _ = learn(table[["size"]], missing="impute").matrix(table, "t.csv")
    filled = SimpleImputer(strategy="median", add_indicator=True).fit_transform(table[["size"]])
    oracle = (filled - [table["size"].mean(), 0]) / [table["size"].std(ddof=0), 1]
    assert np.allclose(X, oracle)


def test_a_missing_level_has_a_column(table):
    table.loc[[3, 9], "town"] = None
    recipe = learn(table[["town"]], missing="impute")
    X, _ = recipe.matrix(table, "t.csv")
    assert recipe.columns[-1] == "town = missing" and np.flatnonzero(X[:, -1]).tolist() == [3, 9]


def test_a_date_is_days_and_its_place_in_the_week(table):
    X, _ = learn(table[["day"]]).matrix(table, "t.csv")
    days = pd.to_datetime(table["day"])
    angle = 2 * np.pi * (days.dt.day_of_week - 3) / 7  # 1970 began on a Thursday
    oracle = np.column_stack([StandardScaler().fit_transform(np.arange(40.0)[:, None]), np.sin(angle), np.cos(angle)])
    assert np.allclose(X, oracle)


def test_dates_mean_the_same_however_they_are_written(table):
    recipe = learn(table[["day"]])
    as_dates = table.assign(day=pd.to_datetime(table["day"]))
    assert np.array_equal(recipe.matrix(table, "t.csv")[0], recipe.matrix(as_dates, "t.csv")[0])


def test_the_order_of_columns_and_columns_too_many_do_not_matter(table):
    recipe = learn(table)
    mixed = table[table.columns[::-1]].assign(extra=1)
    assert np.array_equal(recipe.matrix(table, "t.csv")[0], recipe.matrix(mixed, "t.csv")[0])


def test_a_row_is_encoded_alike_in_any_company(table):
    recipe = learn(table)
    parts = [recipe.matrix(table[start : start + 7], "t.csv")[0] for start in range(0, 40, 7)]
    assert np.array_equal(np.vstack(parts), recipe.matrix(table, "t.csv")[0])


def test_there_is_a_name_for_every_column_of_x(table):
    table = table.astype(object)
    table.loc[0] = None
    table = table.infer_objects()
    recipe = learn(table, missing="impute")
    assert len(set(recipe.columns)) == recipe.matrix(table, "t.csv")[0].shape[1]


def test_an_unknown_level_has_zeros_only(table):
    X, complete = learn(table[["town"]]).matrix(pd.DataFrame({"town": ["Paris"]}), "t.csv")
    assert X.tolist() == [[0, 0, 0]] and complete.all()


def test_unknown_levels_are_counted_by_column(table):
    findings = Findings()
    learn(table).matrix(table[:4].assign(town=["Oslo", "oslo", "Paris", "oslo"]), "new.csv", findings)
    (sentence,) = findings.describe_surprises()
    assert sentence.startswith("'town': 3 rows with levels that the fit did not know ('oslo', 'Paris')")


@pytest.mark.parametrize(("n_levels", "reported"), [(40, True), (1030, True), (1031, False)])
def test_unknown_levels_are_told_from_rare_ones(n_levels, reported):
    fitted = pd.DataFrame({"c": [f"level {i}" for i in range(n_levels)] * 3})
    recipe, findings = learn(fitted, categories=["c"]), Findings()
    recipe.matrix(fitted, "t.csv", findings)
    assert findings.describe_surprises() == []
    recipe.matrix(pd.DataFrame({"c": ["level 7", "NEVERSEEN", "level 39", "NEVERSEEN"]}), "new.csv", findings)
    said = ["'c': 2 rows with levels that the fit did not know ('NEVERSEEN'). Check the spelling."]
    assert findings.describe_surprises() == (said if reported else [])


def test_a_column_of_unknown_levels_is_said_to_be_of_no_use():
    recipe, findings = learn(pd.DataFrame({"c": ["a", "b"] * 9}), categories=["c"]), Findings()
    recipe.matrix(pd.DataFrame({"c": ["x", "y", "z"]}), "new.csv", findings)
    (sentence,) = findings.describe_surprises()
    assert sentence.startswith("'c': 3 rows") and sentence.endswith(ALL_UNKNOWN)


def test_a_recipe_does_not_list_long_texts():
    rule = learn(pd.DataFrame({"c": [f"{i} " + "long " * 50 for i in range(40)] * 3})).rules[0]
    assert rule.other and rule.rare == ()


def test_a_column_of_another_scale_is_found(table):
    findings = Findings()
    learn(table).matrix(table.assign(size=table["size"] * 1000), "new.csv", findings)
    (sentence,) = findings.describe_surprises()
    assert sentence.startswith("'size': ") and "more than 10 standard deviations" in sentence


@pytest.mark.parametrize(
    ("cells", "reported"),
    [
        ([0.12, 0.4, 0.5, 0.11, 0.3], True),
        (["0.12", "0.4", None, "0.5", "0.11", "0.3"], True),
        ([0.12, 0.4, 0.5, 0.11, None], False),
        (["12%", "40", "50", "11", "30"], False),
        (["12 %", "40 %", "50 %", "11 %", "30 %"], False),
    ],
)
@pytest.mark.parametrize("n_chunks", [1, 3])
def test_numbers_without_the_unit_of_the_fit_are_found(cells, reported, n_chunks):
    recipe, findings = learn(pd.DataFrame({"humidity": [f"{i % 50}%" for i in range(120)]})), Findings()
    new = pd.DataFrame({"humidity": cells})
    for part in range(n_chunks):
        recipe.matrix(new[part::n_chunks], "new.csv", findings)
    said = ["'humidity': no cell has the unit '%' that the fit had. Check the unit."]
    assert findings.describe_surprises() == (said if reported else [])


def test_columns_that_are_not_there_are_listed(table):
    with pytest.raises(InvalidInputError, match="new.csv lacks the columns 'size', 'day'"):
        learn(table).matrix(table[["town", "new"]], "new.csv")


@pytest.mark.parametrize(
    ("name", "cells", "said"),
    [
        ("size", ["1.5", "big"], "Column 'size' should hold numbers but has 'big' \\(in 1 row\\)"),
        ("new", ["true", "maybe"], "Column 'new' should be true or false but has 'maybe'"),
        ("day", ["2020-01-01", "soon"], "Column 'day' should hold dates \\(year-month-day\\) but has 'soon'"),
    ],
)
def test_cells_of_another_type_are_named(table, name, cells, said):
    new = table[:2].assign(**{name: cells})
    with pytest.raises(InvalidInputError, match=said):
        learn(table).matrix(new, "new.csv")


def test_missing_values_are_refused_with_their_columns_and_the_option(table):
    table.loc[[1, 2], "size"] = np.nan
    with pytest.raises(InvalidInputError, match=r"t.csv has missing values in 'size' \(2\)\. .*--missing impute"):
        learn(table, missing="refuse").matrix(table, "t.csv")


def test_missing_values_are_filled_by_default_and_counted(table):
    table.loc[[1, 2], "size"] = np.nan
    findings = Findings()
    assert learn(table).matrix(table, "t.csv", findings)[1].all() and findings.missing == {"size": 2}


def test_a_missing_level_that_the_fit_did_not_have_is_not_said_to_be_filled():
    known, findings = pd.DataFrame({"size": [1.5, 2.5, 4.0] * 9, "colour": ["red", "blue", "green"] * 9}), Findings()
    recipe = learn_recipe(known, (), None, "t.csv")
    X, _ = recipe.matrix(pd.DataFrame({"size": [None, 2.0], "colour": ["red", None]}), "new.csv", findings)
    assert X[1, 1:].tolist() == [0.0, 0.0, 0.0]
    assert recipe.describe_missing(findings) == (
        "Missing cells are filled: 'size' (1). Missing cells are none of the levels: 'colour' (1)."
    )


def test_rows_with_missing_values_get_no_place_if_so_asked(table):
    table.loc[[1, 2], "size"] = np.nan
    X, complete = learn(table, missing="drop").matrix(table, "t.csv")
    assert np.flatnonzero(~complete).tolist() == [1, 2] and np.isnan(X).any(axis=1).tolist() == (~complete).tolist()


def test_scales_are_those_of_the_rows_that_are_kept(table):
    table.loc[0, "size"], table.loc[0, "town"] = 1e6, None
    X, complete = learn(table, missing="drop").matrix(table, "t.csv")
    assert abs(X[complete][:, 0].std() - 1) < 1e-12


def test_infinite_numbers_count_as_missing(table):
    table.loc[4, "size"] = np.inf
    with pytest.raises(InvalidInputError, match=r"'size' \(1\)"):
        learn(table, missing="refuse").matrix(table, "t.csv")


def test_columns_can_be_left_out_by_name(table):
    assert learn(table, leave_out=["town", "day"]).columns == ["size", "new"]


@pytest.mark.parametrize("option", ["categories", "leave_out"])
def test_a_column_asked_for_must_be_there(table, option):
    with pytest.raises(InvalidInputError, match="no feature 'twon'"):
        learn(table, **{option: ["twon"]})


def test_a_table_without_a_usable_column_says_why():
    with pytest.raises(InvalidInputError, match="a: left out: constant"):
        learn(pd.DataFrame({"a": [1, 1], "b": ["x", "y"]}))


def test_every_row_may_miss_something():
    table = pd.DataFrame({"a": [1, None, 2, None], "b": [None, 1, None, 2]})
    with pytest.raises(InvalidInputError, match="Every row of t.csv"):
        learn(table, missing="drop")


def test_pixels_share_one_scale_and_none_is_left_out(rng):
    images = pd.DataFrame(np.c_[rng.integers(0, 256, (9, 5)), np.zeros(9)], columns=[f"x{i}" for i in range(6)])
    X, _ = learn(images, image_shape=(2, 3)).matrix(images, "t.npz")
    assert np.allclose(X, images / images.to_numpy().max())


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_column_that_counts_the_rows_of_the_file_is_left_out_whatever_rows_are_kept(table, rng, shuffled):
    table["id"] = rng.permutation(40) if shuffled else range(40)
    table.loc[7, "size"] = np.nan
    recipe = learn(table, missing="drop", rows=np.arange(40) % 5 > 0)
    (rule,) = (rule for rule in recipe.rules if rule.name == "id")
    assert rule.describe() == "left out: numbers the rows; --keep 'id' uses it"


def test_a_feature_is_not_left_out_for_the_rows_that_are_kept(table):
    table["count"] = np.arange(40) // 2
    assert "count" in learn(table, rows=np.arange(40) % 2 == 0).columns


def test_a_column_that_counts_rows_can_be_called_a_category(table):
    table["id"] = range(40)
    assert "id = 3" in learn(table, categories=["id"]).columns


@pytest.mark.parametrize("company", [[], [2.5], [None]])
@pytest.mark.parametrize("fitted", [[1, 5, 8], [1.0, 2.5, 5.0, 8.0]])
def test_a_number_taken_as_a_category_has_its_level_in_any_company(fitted, company):
    recipe = learn(pd.DataFrame({"c": fitted * 2}), categories=["c"], missing="impute")
    X, _ = recipe.matrix(pd.DataFrame({"c": [1, 8, 5, *company]}), "new.parquet")
    found = [[name for name, cell in zip(recipe.columns, row, strict=True) if cell] for row in X[:3]]
    assert found == [["c = 1"], ["c = 8"], ["c = 5"]]


def test_a_number_written_in_two_ways_is_one_level():
    recipe = learn(pd.DataFrame({"c": ["1", "1.0", "8", "8.50", "8.5", "1e0", "08", "x"]}), categories=["c"])
    assert recipe.columns == ["c = 08", "c = 1", "c = 8", "c = 8.5", "c = x"]


@pytest.mark.parametrize("cells", [["1", "8"], ["1.0", "8.0"], [1.0, 8.0], [1, 8]])
@pytest.mark.parametrize("levels", [["1", "8"], ["1.0", "8.0"]])  # the latter of a CSV file, and of older versions
def test_a_level_is_known_however_the_number_is_written(levels, cells):
    recipe = learn(pd.DataFrame({"c": levels * 2}), categories=["c"])
    assert recipe.matrix(pd.DataFrame({"c": cells}), "new.csv")[0].tolist() == [[1, 0], [0, 1]]


def test_dates_after_the_fit_are_named(tmp_path):
    """A visitor's rides of the next 600 days: intervals covered 0.35, and nothing was said."""
    days = pd.date_range("2013-01-01", periods=80)
    frame = pd.DataFrame({"day": days.astype(str), "x": np.arange(80.0) % 7, "y": np.arange(80.0)})
    frame.to_csv(tmp_path / "rides.csv", index=False)
    data = prepare(tmp_path / "rides.csv", ["y"])
    assert any("--time 'day'" in note for note in data.notes)
    assert not any("--time" in note for note in prepare(tmp_path / "rides.csv", ["y"], aside=Aside(time="day")).notes)
    findings = Findings()
    new = pd.DataFrame({"day": (days + pd.Timedelta(days=50)).astype(str), "x": 0.0})
    data.recipe.matrix(new, "new.csv", findings)
    assert "'day': 50 of 80 rows are later" in " ".join(findings.describe_surprises())
    later = Findings()
    prepare(tmp_path / "rides.csv", ["y"], aside=Aside(time="day")).recipe.matrix(new, "new.csv", later)
    assert later.describe_surprises() == []  # they are what such a fit is for
    # As in the file of a recipe, and as in one of an older version.
    write_recipe(data.recipe, tmp_path / "recipe.json")
    assert read_recipe(tmp_path / "recipe.json") == data.recipe
    (tmp_path / "recipe.json").write_text(re.sub(r',\s*"last": [\d.]+', "", (tmp_path / "recipe.json").read_text()))
    (date,) = (rule for rule in read_recipe(tmp_path / "recipe.json").used if rule.name == "day")
    assert date.last is None and date.count_later(np.array([1e9])) == 0

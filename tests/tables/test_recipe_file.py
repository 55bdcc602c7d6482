"""recipe.json: comes back as it was, or is refused."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distreduce.exceptions import ModelFileError
from distreduce.tables.recipe import learn_recipe, read_recipe, write_recipe

TABLE = pd.DataFrame(
    {
        "n": [1.5, np.nan, 2.5, 9.0],
        "c é": ["u", "v", None, "u"],
        "b": [True, False, True, True],
        "d": ["2020-01-01", "2021-02-01", "2023-01-05", "2020-06-01"],
        "gone": [1, 1, 1, 1],
    }
)


@pytest.fixture
def recipe():
    return learn_recipe(TABLE, ["y", "z"], "regression", "t.csv", missing="impute")


@pytest.fixture
def content(recipe, tmp_path):
    write_recipe(recipe, tmp_path / "r.json")
    return json.loads((tmp_path / "r.json").read_text("utf-8"))


def test_a_recipe_comes_back_as_it_was(recipe, tmp_path):
    write_recipe(recipe, tmp_path / "r.json")
    assert read_recipe(tmp_path / "r.json") == recipe


def test_rare_levels_come_back_and_may_be_absent_as_in_older_files(tmp_path):
    recipe = learn_recipe(pd.DataFrame({"c": [f"level {i}" for i in range(40)] * 3}), ["y"], "regression", "t.csv")
    write_recipe(recipe, tmp_path / "r.json")
    assert read_recipe(tmp_path / "r.json") == recipe and len(recipe.rules[0].rare) == 10
    content = json.loads((tmp_path / "r.json").read_text("utf-8"))
    del content["columns"][0]["rare"]
    (tmp_path / "r.json").write_text(json.dumps(content))
    assert read_recipe(tmp_path / "r.json").columns == recipe.columns


def test_a_recipe_of_an_earlier_version_encodes_as_one_of_today(recipe):
    earlier = read_recipe(Path(__file__).parent / "golden" / "recipe-0.1.0.json")
    assert earlier.columns == recipe.columns
    np.testing.assert_allclose(earlier.matrix(TABLE, "t.csv")[0], recipe.matrix(TABLE, "t.csv")[0], atol=1e-12)


def test_an_image_shape_comes_back(tmp_path):
    recipe = learn_recipe(pd.DataFrame(np.eye(6)), ["y"], "regression", "t.npz", image_shape=(2, 3))
    write_recipe(recipe, tmp_path / "r.json")
    assert read_recipe(tmp_path / "r.json").image_shape == (2, 3)


def test_a_missing_file_says_what_to_name(tmp_path):
    with pytest.raises(ModelFileError, match="name a folder that `distreduce fit` wrote"):
        read_recipe(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (["format"], "other", "format"),
        (["version"], 2, "version is 2"),
        (["task"], "guess", "task"),
        (["missing"], "ignore", "missing"),
        (["targets"], [], "no targets"),
        (["image_shape"], [2, -3], "image shape"),
        (["image_shape"], [2.5, 3], "image shape"),
        (["columns"], {}, "no columns"),
        (["columns"], [], "uses no column"),
        (["columns", 0, "kind"], "rocket", "unknown kind"),
        (["columns", 0, "scale"], 0, "'scale' of column 'n' is 0"),
        (["columns", 0, "center"], "x", "'center'"),
        (["columns", 0, "center"], True, "'center'"),
        (["columns", 0, "center"], float("nan"), "'center'"),
        (["columns", 0, "extra"], 1, "other fields"),
        (["columns", 0, "name"], "b", "twice"),
        (["columns", 1, "levels"], ["u", "u"], "'levels'"),
        (["columns", 1, "levels"], ["u", 3], "'levels'"),
        (["columns", 1, "rare"], ["w", 3], "'rare'"),
        (["columns", 1, "rare"], ["w"] * 1001, "'rare'"),
        (["columns", 3, "cycles"], [0], "'cycles'"),
    ],
)
def test_a_changed_value_is_refused_with_its_reason(content, tmp_path, place, value, said):
    *way, last = place
    spoilt = node = deepcopy(content)
    for step in way:
        node = node[step]
    node[last] = value
    (tmp_path / "r.json").write_text(json.dumps(spoilt))
    with pytest.raises(ModelFileError, match=said):
        read_recipe(tmp_path / "r.json")


@settings(max_examples=60)
@given(cut=st.integers(0, 10_000), junk=st.binary(max_size=4))
def test_damage_is_never_a_crash(cut, junk, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "r.json"
    recipe = learn_recipe(TABLE, ["y"], "regression", "t.csv", missing="impute")
    write_recipe(recipe, path)
    whole = path.read_bytes()
    at = cut % len(whole)
    path.write_bytes(whole[:at] + junk + whole[at + 4 :])
    try:
        again = read_recipe(path)
    except ModelFileError:
        return
    assert again.matrix(TABLE.rename(columns=dict(zip(TABLE.columns, [r.name for r in again.rules], strict=True))), "t")

"""TablePreparer does to data frames what the command line does to files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from distreduce.exceptions import DataWarning, InvalidInputError, InvalidTypeError
from distreduce.tables import TablePreparer
from distreduce.tables.prepare import prepare


@pytest.fixture
def frame(rng):
    return pd.DataFrame(
        {
            "size": np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60)),
            "town": rng.choice(["Oslo", "Bern", None], 60),
            "zip": rng.choice(["01234", "80331"], 60),
            "sold": pd.date_range("2020-01-01", periods=60, freq="9D"),
            "id": range(60),
        }
    )


def test_it_encodes_as_the_command_line(frame, tmp_path):
    frame.assign(y=np.sin(np.arange(60))).to_csv(tmp_path / "t.csv", index=False)
    expected = prepare(tmp_path / "t.csv", ["y"])
    preparer = TablePreparer().fit(frame)
    np.testing.assert_allclose(preparer.transform(frame), expected.X, atol=1e-12)
    assert preparer.get_feature_names_out().tolist() == expected.recipe.columns


def test_it_comes_back_from_its_file(frame, tmp_path):
    preparer = TablePreparer(missing="drop").fit(frame)
    preparer.save(tmp_path / "p.json")
    again = TablePreparer.load(tmp_path / "p.json")
    np.testing.assert_array_equal(again.transform(frame), preparer.transform(frame))
    assert (again.missing, list(again.feature_names_in_)) == ("drop", list(frame))


def test_its_file_keeps_what_another_fit_needs(frame, tmp_path):
    preparer = TablePreparer(categories=("zip",), leave_out=("size",), keep=("id",)).fit(frame)
    preparer.save(tmp_path / "p.json")
    again = TablePreparer.load(tmp_path / "p.json")
    assert again.get_params() == preparer.get_params()
    assert list(clone(again).fit(frame).get_feature_names_out()) == list(preparer.get_feature_names_out())


@pytest.mark.parametrize("given", [pd.Index, np.array, set])
def test_columns_may_be_named_by_any_collection(frame, tmp_path, given):
    preparer = TablePreparer(categories=given(["zip"])).fit(frame)
    preparer.save(tmp_path / "p.json")
    assert TablePreparer.load(tmp_path / "p.json").categories == ("zip",)


def test_it_works_in_a_pipeline_with_names_and_clones(frame):
    y = (np.arange(60) > 30).astype(int)
    model = clone(make_pipeline(TablePreparer(categories=["id"]), LogisticRegression())).fit(frame, y)
    assert model[:-1].get_feature_names_out()[-1] == "id = other" and model.score(frame, y) > 0.9
    out = TablePreparer().set_output(transform="pandas").fit_transform(frame)
    assert list(out)[:2] == ["size", "size missing"]


def test_polars_frames_are_read(frame):
    preparer = TablePreparer().fit(frame)
    np.testing.assert_allclose(preparer.transform(pl.from_pandas(frame)), preparer.transform(frame), atol=1e-9)


def test_unknown_levels_draw_a_warning(frame):
    with pytest.warns(DataWarning, match=r"Column 'town': 60 rows with levels that the fit did not know \('oslo'\)"):
        TablePreparer().fit(frame).transform(frame.assign(town="oslo"))


@pytest.mark.parametrize("gap", ["?", "NA", "-", " n/a ", ".", "k.A."])
@pytest.mark.parametrize("dtype", [object, "string"])
def test_texts_that_are_gaps_in_files_are_gaps_in_data_frames(gap, dtype, tmp_path):
    cells = [*range(1, 11), gap] * 10
    frame = pd.DataFrame({"a": pd.Series(cells).astype(str if dtype == "string" else object).astype(dtype)})
    frame["b"] = np.sqrt(np.arange(110.0))
    preparer = TablePreparer().fit(frame)
    assert preparer.recipe_.rules[0].describe() == "number, with gaps"
    frame.map(lambda cell: cell.strip() if isinstance(cell, str) else cell).to_csv(tmp_path / "t.csv", index=False)
    expected = prepare(tmp_path / "t.csv", ["b"])
    np.testing.assert_allclose(preparer.transform(frame)[:, :2], expected.X, atol=1e-12)
    assert frame["a"].tolist()[10] == gap  # the caller's frame is as it was


def test_gaps_of_a_parquet_file_are_those_of_a_text_file(tmp_path):
    frame = pd.DataFrame({"a": [*map(str, range(1, 11)), "?"] * 10, "b": np.sqrt(np.arange(110.0))})
    frame.to_parquet(tmp_path / "t.parquet")
    assert prepare(tmp_path / "t.parquet", ["b"]).recipe.rules[0].describe() == "number, with gaps"


def test_levels_of_a_category_of_pandas_are_what_they_are_called():
    frame = pd.DataFrame({"sign": pd.Categorical(["+", "-", "+", "-"])})
    assert TablePreparer().fit(frame).recipe_.columns == ["sign = +", "sign = -"]


def test_an_error_about_a_cell_of_a_frame_names_parameters():
    with pytest.raises(InvalidInputError, match=r"categories=\['a'\].* leave_out=\['a'\]") as error:
        TablePreparer().fit(pd.DataFrame({"a": [*range(1, 11), "ten"] * 10}))
    assert "--" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "X", "error", "said"),
    [
        ({}, np.eye(3), InvalidTypeError, "give a DataFrame"),
        ({"missing": "ignore"}, None, InvalidInputError, "must be one of impute, drop, refuse"),
        ({"missing": "refuse"}, None, InvalidInputError, "missing values in 'size'"),
        ({"leave_out": "town"}, None, InvalidTypeError, r"leave_out='town'.*\['town'\]"),
        ({"leave_out": ["no"]}, None, InvalidInputError, "no feature 'no'"),
    ],
)
def test_what_cannot_be_done_is_said(frame, options, X, error, said):
    with pytest.raises(error, match=said):
        TablePreparer(**options).fit_transform(frame if X is None else X)

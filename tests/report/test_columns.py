"""Columns of a table as colours: kinds, limits, and the means that prototypes take."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from distreduce.plotting.palette import colour_by_target
from distreduce.report import columns
from distreduce.report.columns import LEAST_COLUMNS, MAX_CATEGORIES, Colouring, read_columns
from distreduce.tables.recipe import learn_recipe

N = 150


@pytest.fixture
def colouring(classes):
    return Colouring(classes, np.arange(N), np.arange(12))


def the_column(colouring, values):
    found = colouring.encode_columns(pd.DataFrame({"column": values}), set())
    return found[0] if found else None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(N) / 7, "number"),
        (pd.array([1, 2, None] * 50, dtype="Int64"), "number"),
        ([True, False] * 75, "class"),
        (["a", "b", None] * 50, "class"),
        (pd.Categorical(["u", "v", "w"] * 50), "class"),
        (pd.date_range("2020", periods=N, tz="Europe/Berlin"), "date"),
        ([1, "a", None] * 50, "class"),
        (np.arange(N) % 3 * 1j, "class"),
    ],
)
def test_each_kind_of_column_is_known(colouring, values, kind):
    assert the_column(colouring, values)["kind"] == kind


@pytest.mark.parametrize(
    "values",
    [
        np.full(N, 3.0),
        np.full(N, np.nan),
        [f"name {k}" for k in range(N)],
        ["same"] * N,
        np.where(np.arange(N) % 2, 1.7e308, -1.7e308),
    ],
    ids=["constant", "empty", "names", "one kind", "too wide"],
)
def test_columns_that_colour_cannot_tell_are_left_out(colouring, values):
    assert the_column(colouring, values) is None


@pytest.mark.parametrize("size", [1.0, 1e-50, 1e300])
def test_numbers_read_back(colouring, unpack, size):
    """Amounts from 2 to 38,000 had steps of 0.59, so that "Save rows" wrote 9.99 for 10.36."""
    values = size * np.exp(3 * np.random.default_rng(0).normal(size=N))
    np.testing.assert_allclose(unpack(the_column(colouring, values)["samples"]), values, rtol=1e-7)


def test_dates_and_numbers_that_hardly_differ_read_back(colouring, unpack):
    days = pd.Series(pd.date_range("1990", periods=N, freq="61D"))
    read = unpack(the_column(colouring, days)["samples"]).astype("datetime64[ms]")
    np.testing.assert_array_equal(read, days.to_numpy("datetime64[ms]"))
    for whole in (1.7e9 + np.arange(N), np.random.default_rng(0).integers(10**7, 2 * 10**9, N)):
        np.testing.assert_array_equal(unpack(the_column(colouring, whole)["samples"]), whole)


def test_a_prototype_has_the_mean_of_its_samples(colouring, classes):
    values = np.random.default_rng(0).normal(size=N)
    T = classes.coupling_.toarray()
    used = T.sum(axis=0) > 0
    expected = np.array([np.average(values, weights=column) for column in T.T[used]])
    np.testing.assert_allclose(np.array(the_column(colouring, values)["prototypes"])[used], expected)


def test_missing_values_are_left_out_of_a_mean(colouring, classes):
    values = np.arange(N, dtype=float)
    values[::2] = np.nan
    T = classes.coupling_.toarray()[1::2]
    used = T.sum(axis=0) > 0
    expected = (T.T @ values[1::2])[used] / T.sum(axis=0)[used]
    np.testing.assert_allclose(np.array(the_column(colouring, values)["prototypes"])[used], expected)


def test_a_mark_whose_samples_all_lack_a_value_is_not_known(colouring, classes, unpack):
    """It had the mean of all samples as its colour, though its samples were grey."""
    T = classes.coupling_.toarray()
    k = int(np.flatnonzero(T.sum(axis=0))[0])
    own = T[:, k] > 0
    values = np.where(own, np.nan, np.arange(N))
    found = np.array(the_column(colouring, values)["prototypes"], dtype=float)
    assert np.isnan(found[k]) and None in the_column(colouring, values)["prototypes"]
    texts = pd.Series(["a", "b"] * 75).mask(own)
    shares = unpack(the_column(colouring, texts)["prototypes"]).reshape(12, -1)
    np.testing.assert_array_equal(np.isnan(shares).all(axis=1), np.isnan(found))


def test_an_outlier_does_not_take_the_whole_scale(colouring):
    values = np.r_[np.linspace(0, 1, N - 1), 1e6]
    assert the_column(colouring, values)["shown"][1] < 2


def test_skewed_numbers_have_colours_by_quarters(colouring):
    values = np.exp(np.linspace(0, 10, N))
    quarters = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(the_column(colouring, values)["shown"], quarters)
    assert len(the_column(colouring, np.r_[np.zeros(N - 9), np.arange(9.0)])["shown"]) == 2  # mostly one value
    prices = np.r_[np.linspace(60, 160, N // 2), np.linspace(160, 300, N // 2 - 1), 640]  # half in a fifth of the range
    assert len(the_column(colouring, prices)["shown"]) == 5
    assert len(the_column(colouring, np.linspace(60, 160, N))["shown"]) == 2


def test_rare_categories_share_the_last_colour(colouring):
    values = ["a"] * 100 + [f"rare {k}" for k in range(50)]
    node = the_column(colouring, values)
    assert (node["labels"][0], node["labels"][-1], len(node["palette"])) == ("a", "44 others", 8)


def test_a_text_of_many_kinds_is_not_a_category(colouring):
    values = [f"kind {k % (MAX_CATEGORIES + 1)}" for k in range(N)]
    assert the_column(colouring, values) is None


def test_the_fewer_samples_the_more_columns(colouring, monkeypatch):
    table = pd.DataFrame({f"c{k}": np.arange(N) for k in range(60)})
    counts = []
    for size in (1, 50 * N, 400_000):
        monkeypatch.setattr(columns, "MAX_VALUES", size)
        counts.append(len(colouring.encode_columns(table, {"c0"})))
    assert counts == [LEAST_COLUMNS, 50, 59]


def test_columns_of_one_name_differ_by_place(colouring):
    table = pd.DataFrame(np.c_[np.arange(N), -np.arange(N)], columns=["same", "same"])
    assert [node["low"] for node in colouring.encode_columns(table, set())] == [0, -N + 1]


def test_the_shares_of_a_prototype_are_those_of_the_plots(classes, labels, colouring, unpack):
    both = Colouring(classes, colouring.samples, colouring.prototypes, with_evidence=True)
    node = both.encode_target(labels, 0, "species")
    for name, places in (("prototypes", "left_out"), ("believed", "fitted")):
        shares = unpack(node[name]).reshape(12, -1)
        main = np.array([to_rgba(colour) for colour in node["palette"]])[shares.argmax(axis=1)]
        expected = colour_by_target(classes, labels, 0, places)
        np.testing.assert_allclose(main, expected.prototypes, atol=0.003)
        np.testing.assert_allclose(shares.max(axis=1), expected.main_shares, atol=1e-6)


def test_without_a_target_there_is_one_colour(unsupervised):
    assert Colouring(unsupervised, np.arange(N), np.arange(12)).encode_target(None, 0, "")["kind"] == "none"


def test_columns_are_read_as_by_the_recipe(colouring):
    """Texts with a unit and dates of a file could not colour the map, nor tell a prototype from others."""
    days = pd.Series(pd.date_range("2024-01-01", periods=N))
    areas = [f"{50 + k}.5 m²" for k in range(N)]
    table = pd.DataFrame({"area": areas, "day": days.dt.strftime("%d.%m.%Y"), "grade": [1, 2, 3] * 50})
    read = read_columns(table, learn_recipe(table, [], None, "file", categories=["grade"]))
    assert [node["kind"] for node in colouring.encode_columns(read, set())] == ["number", "date", "class"]
    pd.testing.assert_series_equal(read["day"], days, check_names=False, check_dtype=False)
    assert read["area"].tolist() == [50.5 + k for k in range(N)] and table["area"][0] == "50.5 m²"

"""Kinds of targets: numbers, several numbers, labels of every type, and targets that are partly unknown."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from distreduce import SDR
from distreduce.estimators._targets import read_known_labels, read_targets
from distreduce.exceptions import DataWarning, InvalidInputError

LABELS = {
    "string": lambda y: np.array(["ash", "birch", "cedar"])[y],
    "object": lambda y: np.array(["ash", "birch", "cedar"], dtype=object)[y],
    "float": lambda y: y.astype(float),
    "negative": lambda y: y - 3,
    "uint8": lambda y: y.astype(np.uint8),
    "categorical": lambda y: pd.Categorical.from_codes(y, ["ash", "birch", "cedar"]),
    "categorical series": lambda y: pd.Series(pd.Categorical.from_codes(y, ["ash", "birch", "cedar"])),
    "nullable int": lambda y: pd.Series(y, dtype="Int64"),
    "pandas string": lambda y: pd.Series(np.array(["ash", "birch", "cedar"])[y], dtype="string"),
    "list": lambda y: y.tolist(),
}


@pytest.mark.parametrize(("kind", "task"), [("list", "classification"), *((kind, "auto") for kind in LABELS)])
def test_names_of_the_classes_do_not_matter(kind: str, task: str, classification: Any) -> None:
    X, y = classification
    expected = SDR(n_prototypes=9, random_state=0).fit(X, y)
    model = SDR(n_prototypes=9, random_state=0, task=task).fit(X, LABELS[kind](y))
    assert_array_equal(model.prototype_targets_, expected.prototype_targets_)


@pytest.mark.parametrize("kind", LABELS)
def test_classes_are_the_sorted_labels(kind: str, classification: Any) -> None:
    X, y = classification
    labels = LABELS[kind](y)
    model = SDR(n_prototypes=9, random_state=0).fit(X, labels)
    assert list(model.classes_) == sorted(set(labels))


def test_booleans_are_two_classes(classification: Any) -> None:
    X, y = classification
    model = SDR(random_state=0).fit(X, y > 0)
    assert (model.task_, model.classes_.tolist()) == ("classification", [False, True])


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.linspace(0, 1, 30), "regression"),
        (np.arange(30), "regression"),
        (np.arange(30) // 3, "classification"),
        (np.arange(30) % 2 * 1.0, "classification"),
        (np.arange(30) % 2 * 0.5, "regression"),
        (np.arange(30) % 6 / 2, "regression"),
        (np.r_[np.zeros(29), 1.0], "classification"),
        (pd.Series(np.arange(30) % 4, dtype="float64[pyarrow]"), "classification"),
        (pd.Series(np.arange(30) % 4, dtype="Int64"), "classification"),
        (pd.Series([Decimal(i) / 4 for i in range(30)]), "regression"),
        (pd.Series([Decimal(i % 4) for i in range(30)]), "classification"),
        (np.array(["u", "v"])[np.arange(30) % 2], "classification"),
        (np.array(["0.5", "1.5"])[np.arange(30) % 2], "classification"),
        ([f"{i % 5:05d}" for i in range(30)], "classification"),
        (pd.Series(pd.Categorical(np.arange(30) % 2 * 0.5)), "classification"),
    ],
)
def test_task_is_read_from_the_targets(y: np.ndarray, task: str, rng: np.random.Generator) -> None:
    assert SDR(n_prototypes=5, random_state=0).fit(rng.normal(size=(30, 3)), y).task_ == task


@pytest.mark.parametrize("as_frame", [False, True])
def test_several_targets_have_a_column_each(as_frame: bool, regression: Any) -> None:
    X, y = regression
    Y = np.c_[y, 5 + 100 * X[:, 0], X[:, 1] ** 2]
    model = SDR(n_prototypes=8, random_state=0)
    model.fit(X, pd.DataFrame(Y, columns=["heat", "cold", "wet"]) if as_frame else Y)
    names = ["mean heat", "mean cold", "mean wet"] if as_frame else ["mean y0", "mean y1", "mean y2"]
    assert model.summary().columns[5:8].tolist() == names


def test_several_targets_each_count_on_their_own_scale(regression: Any) -> None:
    X, y = regression
    Y = np.c_[y, X[:, 1] ** 2]
    model = SDR(random_state=0)
    expected = model.fit_transform(X, Y)
    assert_allclose(model.fit_transform(X, Y * [2.0**20, 2.0**-40]), expected, atol=1e-6)


def test_prototype_targets_are_weighted_means_in_the_units_of_y(regression: Any, rng: np.random.Generator) -> None:
    X, y = regression
    y, w = 1e5 + 300 * y, rng.uniform(0.5, 2, len(y))
    model = SDR(n_prototypes=8, random_state=0).fit(X, y, sample_weight=w)
    T = model.coupling_.toarray() * w[:, None]
    used = model.prototype_weights_ > 0
    assert_allclose(model.prototype_targets_[used, 0], (T.T @ y)[used] / T.sum(axis=0)[used], rtol=1e-12)


def test_prototype_targets_are_class_shares(classification: Any) -> None:
    X, y = classification
    model = SDR(n_prototypes=9, random_state=0).fit(X, y)
    T = model.coupling_.toarray()
    used = model.prototype_weights_ > 0
    assert_allclose(model.prototype_targets_[used], (T.T @ np.eye(3)[y])[used] / T.sum(axis=0)[used, None], atol=1e-14)


@pytest.mark.parametrize("n_prototypes", [None, 9])
@pytest.mark.parametrize("missing", [None, np.nan])
def test_rows_without_label_take_part_in_the_geometry_only(
    missing: Any, n_prototypes: Any, classification: Any
) -> None:
    X, y = classification
    labels = np.array(["ash", "birch", "cedar"], dtype=object)[y]
    unknown = np.arange(len(y)) % 3 == 0
    labels[unknown] = missing
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, labels)
    T = model.coupling_.toarray()[~unknown]
    carried = T.sum(axis=0)
    shares = (T.T @ np.eye(3)[y[~unknown]])[carried > 0] / carried[carried > 0, None]
    assert_allclose(model.prototype_targets_[carried > 0], shares, atol=1e-14)


@pytest.mark.parametrize("n_prototypes", [None, 8])
def test_rows_without_number_take_part_in_the_geometry_only(n_prototypes: Any, regression: Any) -> None:
    X, y = regression
    partly = y.copy()
    unknown = np.arange(len(y)) % 4 == 0
    partly[unknown] = np.nan
    model = SDR(n_prototypes=n_prototypes, random_state=0).fit(X, partly)
    T = model.coupling_.toarray()[~unknown]
    carried = T.sum(axis=0)
    means = (T.T @ y[~unknown])[carried > 0] / carried[carried > 0]
    assert_allclose(model.prototype_targets_[carried > 0, 0], means, atol=1e-12)


def test_rows_without_target_change_the_geometry(regression: Any) -> None:
    X, y = regression
    partly = y.copy()
    partly[::4] = np.nan
    known = ~np.isnan(partly)
    model = SDR(n_prototypes=8, random_state=0)
    assert np.abs(model.fit_transform(X, partly)[known] - model.fit_transform(X[known], y[known])).max() > 1e-3


def test_unknown_rows_are_embedded_by_their_place_in_x(classification: Any) -> None:
    """Half of the labels are enough to place the others: the nearest known neighbour has the right class."""
    X, y = classification
    labels = y.astype(float)
    labels[::2] = np.nan
    Z = SDR(random_state=0, perplexity=10).fit_transform(X, labels)
    nearest = np.linalg.norm(Z[::2, None] - Z[None, 1::2], axis=2).argmin(axis=1)
    assert (y[1::2][nearest] == y[::2]).mean() > 0.75


def test_nan_among_whole_numbers_is_still_classification(classification: Any) -> None:
    X, y = classification
    labels = y.astype(float)
    labels[::5] = np.nan
    assert_array_equal(SDR(random_state=0).fit(X, labels).classes_, [0, 1, 2])


@pytest.mark.parametrize("y", [np.full(60, np.nan), [None] * 60, np.full((60, 2), np.nan)])
def test_no_known_target_at_all_is_an_error(y: Any, regression: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"y holds no known target.*DistR"):
        SDR().fit(regression[0], y)


@pytest.mark.parametrize("kind", [list, pd.Series, lambda y: np.array(y, dtype=object)])
def test_nan_among_texts_is_unknown_in_any_container(kind: Any, classification: Any) -> None:
    X, y = classification
    labels = [float("nan") if i % 5 == 0 else "abc"[label] for i, label in enumerate(y)]
    assert_array_equal(SDR(n_prototypes=8, random_state=0).fit(X, kind(labels)).classes_, ["a", "b", "c"])


def test_masked_labels_are_unknown(classification: Any) -> None:
    X, y = classification
    assert_array_equal(SDR(n_prototypes=8, random_state=0).fit(X, np.ma.masked_array(y, y == 0)).classes_, [1, 2])


def test_many_whole_numbers_are_numbers_and_this_is_reported(rng: np.random.Generator) -> None:
    y = np.repeat(np.arange(3000.0, 3025.0), 4)  # body masses: each occurs four times
    with pytest.warns(DataWarning, match=r"25 distinct whole numbers.*task='classification'"):
        model = SDR(n_prototypes=5, random_state=0).fit(rng.normal(size=(100, 3)), y)
    assert model.task_ == "regression"
    assert read_targets(y, 100, "classification", np.ones(100)).task == "classification"


def test_whole_numbers_need_three_rows_per_value_to_be_classes(rng: np.random.Generator) -> None:
    assert read_targets([18, 15], 2, "auto", np.ones(2)).task == "regression"


@pytest.mark.parametrize("weight", [2, 3])
def test_weights_count_as_copies_when_the_task_is_guessed(weight: int, rng: np.random.Generator) -> None:
    y = np.r_[np.arange(7), np.arange(7), np.arange(6)]
    w = np.full(20, float(weight))
    weighted = read_targets(y, 20, "auto", w)
    assert weighted.task == read_targets(np.repeat(y, weight), 20 * weight, "auto", np.ones(20 * weight)).task


def test_rows_of_weight_zero_do_not_count_when_the_task_is_guessed() -> None:
    y, w = np.r_[np.arange(2).repeat(3), np.arange(2, 16)], np.r_[np.ones(6), np.zeros(14)]
    assert read_targets(y, 20, "auto", w).task == "classification"


def test_weights_that_sum_to_one_do_not_change_the_guess() -> None:
    y = np.arange(30) % 3
    assert read_targets(y, 30, "auto", np.full(30, 1 / 30)).task == "classification"


DATES = pd.date_range("2020-01-01", periods=60)


@pytest.mark.parametrize("task", ["auto", "regression", "classification"])
@pytest.mark.parametrize(
    "y",
    [
        DATES,
        pd.Series(DATES.tz_localize("Asia/Tokyo")),
        pd.Series(DATES.to_period("D")),
        DATES.date,
        [None, *DATES.date[1:]],
        pd.Series(DATES - DATES[0]),
        np.array([timedelta(days=i) for i in range(60)], dtype=object),
        pd.Series(DATES.date, dtype="date32[pyarrow]"),
        pd.Series(DATES, dtype="timestamp[s][pyarrow]"),
        pl.Series(DATES.date.tolist()),
    ],
)
def test_dates_and_durations_are_refused(y: Any, task: str) -> None:
    with pytest.raises(InvalidInputError, match="dates or durations; give numbers"):
        read_targets(y, 60, task, np.ones(60))


def test_minus_one_is_unlabelled_as_in_scikit_learn(classification: Any) -> None:
    X, y = classification
    labels = np.where(np.arange(len(y)) % 5 == 0, -1, y)
    with pytest.warns(DataWarning, match=r"-1 .*unknown.*astype\(str\)"):
        model = SDR(n_prototypes=9, random_state=0).fit(X, labels)
    expected = SDR(n_prototypes=9, random_state=0).fit(X, np.where(labels < 0, np.nan, y))
    assert_array_equal(model.prototype_targets_, expected.prototype_targets_)


@pytest.mark.parametrize("y", [[-1, 1] * 9, [-2, -1, 0] * 9, ["-1", "0", "1"] * 9])
def test_other_minus_ones_are_classes(y: Any) -> None:
    targets = read_targets(y, len(y), "auto", np.ones(len(y)))
    assert targets.classes is not None and len(targets.classes) == len(set(y))


def test_a_number_and_the_same_as_text_are_not_one_class() -> None:
    with pytest.raises(InvalidInputError, match="1 and '1'"):
        read_targets([1, "1", "b"] * 9, 27, "classification", np.ones(27))
    with pytest.raises(InvalidInputError, match="1 and '1'"):
        read_known_labels([1, "1", "b"] * 9, 27)


def test_pandas_missing_values_are_unknown(classification: Any) -> None:
    X, y = classification
    labels = pd.Series(y, dtype="Int64")
    labels[::5] = pd.NA
    floats = y.astype(float)
    floats[::5] = np.nan
    model = SDR(random_state=0)
    expected = model.fit_transform(X, floats)
    assert_array_equal(model.fit_transform(X, labels), expected)


def test_series_name_is_in_the_summary(regression: Any) -> None:
    X, y = regression
    model = SDR(n_prototypes=5, random_state=0).fit(X, pd.Series(y, name="price"))
    assert "mean price" in model.summary()


def test_refit_to_numbers_forgets_the_classes(classification: Any) -> None:
    X, y = classification
    model = SDR(n_prototypes=5, random_state=0).fit(X, y).fit(X, X[:, 0])
    assert not hasattr(model, "classes_")

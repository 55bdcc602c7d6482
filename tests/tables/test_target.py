"""Targets of a table."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from distreduce.exceptions import InvalidInputError
from distreduce.tables.target import read_target


def read(cells, task="auto"):
    return read_target(pd.DataFrame({"y": cells}), task, "t.csv")


@pytest.mark.parametrize(
    ("cells", "task", "values"),
    [
        ([0.5, 1.5, np.nan], "regression", [0.5, 1.5, None]),
        (["b", "a ", None, "b", "a"], "classification", ["b", "a", None, "b", "a"]),
        ([2, 10, 2, 10, 2, 10], "classification", [2, 10, 2, 10, 2, 10]),
        ([2.0, np.nan, 3.0, 3.0, 2.0, 3.0, 3.0], "classification", [2, None, 3, 3, 2, 3, 3]),
        ([18, 15], "regression", [18, 15]),
        ([True, False, True], "classification", ["True", "False", "True"]),
        (pd.Categorical(["u", "v", "u", "v"]), "classification", ["u", "v", "u", "v"]),
        (pd.Categorical([1.5, 2.5, 1.5, 2.5]), "classification", ["1.5", "2.5", "1.5", "2.5"]),  # as SDR reads it
    ],
)
def test_task_and_values(cells, task, values):
    target = read(cells)
    found = [None if pd.isna(value) else value for value in target.y]
    assert (target.task, found) == (task, values)


def test_classes_of_whole_numbers_are_whole_numbers_of_python_or_numpy():
    target = read([2.0, np.nan, 10.0, 10.0, 2.0, 10.0, 2.0])
    assert target.values(np.array([0, 2])).dtype.kind == "i"


def test_a_task_can_be_asked_for():
    assert read([1, 2, 1, 2, 1, 2], "regression").task == "regression"


def test_whole_number_prices_are_numbers_and_the_option_for_classes_is_named():
    target = read(np.repeat(np.arange(300, 330), 4))
    assert target.task == "regression"
    assert target.notes == (
        "Target 'y' has 30 distinct whole numbers, read as numbers; --task classification reads them as classes.",
    )


def test_hundreds_of_whole_numbers_are_no_doubt_numbers():
    assert read(np.repeat(np.arange(280), 4)).notes == ()


def test_classes_that_are_whole_numbers_name_the_option_for_numbers():
    (note,) = read([3, 4, 5] * 9).notes
    assert note == "Target 'y' has 3 distinct whole numbers, read as classes; --task regression reads them as numbers."


def test_minus_one_is_unknown_unless_classes_are_asked_for():
    cells = [-1, 0, 1] * 6
    guessed, asked = read(cells), read(cells, "classification")
    assert guessed.known.tolist() == [False, True, True] * 6 and "--task classification" in guessed.notes[0]
    assert asked.known.all() and set(asked.y) == {"-1", "0", "1"}  # text: SDR would read the number as unknown


def test_of_several_targets_a_row_has_all_or_none():
    target = read_target(pd.DataFrame({"y": [1.5, np.nan, 3.5], "z": [1.0, 2.0, 5.0]}), "auto", "t.csv")
    assert target.known.tolist() == [True, False, True] and np.isnan(target.y.to_numpy()[1]).all()


@pytest.mark.parametrize(
    ("cells", "task", "said"),
    [
        ([None, None], "auto", "no values at all"),
        ([" ", ""], "auto", "no values at all"),
        (["a", "a"], "auto", "single value \\('a'\\)"),
        ([1.5, 1.5], "auto", "single value"),
        ([f"name {i}" for i in range(9)], "auto", "9 values in 9 rows: too many for classes"),
        ([f"{i},5" for i in range(9)], "auto", "looks like numbers"),
        (pd.date_range("2020", periods=3), "auto", "holds dates"),
        (pd.timedelta_range("1 day", periods=3), "auto", "holds dates"),
        (pd.period_range("2020", periods=3), "classification", "holds dates"),
        (pd.date_range("2020", periods=3).date, "auto", "holds dates"),
        (["a", "b", "a", "b"], "regression", "should be a number"),
    ],
)
def test_a_target_that_cannot_be_used_says_why(cells, task, said):
    with pytest.raises(InvalidInputError, match=said):
        read(cells, task)


def test_a_target_of_spoilt_numbers_is_not_advised_to_be_a_category():
    with pytest.raises(InvalidInputError, match=r"looks like numbers but has '1,23' .*leave unknown cells empty\.$"):
        read([*map(str, range(9)), "1,23"])


def test_prices_with_a_currency_are_numbers():
    assert read([f"€ {i},750" for i in range(1, 10)]).y.tolist() == [1000 * i + 750 for i in range(1, 10)]


@pytest.mark.parametrize(
    "cells",
    [
        [Decimal(i) / 4 for i in range(9)],  # what databases export
        [f"{i / 4}" for i in range(9)],
        [f"{2**64 + i * 10**6}" for i in range(9)],
    ],
    ids=["decimals", "texts", "beyond 64 bits"],
)
def test_numbers_of_another_type_are_numbers(cells):
    target = read(pd.Series(cells, dtype=object))
    assert target.task == "regression" and target.y.tolist() == pytest.approx([float(cell) for cell in cells])


def test_texts_of_numbers_are_too_many_classes_if_classes_are_asked_for():
    with pytest.raises(InvalidInputError, match="9 values in 9 rows: too many for classes"):
        read([f"{i / 4}" for i in range(9)], "classification")


@pytest.mark.parametrize(
    "cells", [["14.11.2023", "15.11.2023", "16.11.2023"], ["2023-11-14", "2023-11-15", "2024-01-01"]]
)
def test_dates_as_text_are_called_dates(cells):
    with pytest.raises(InvalidInputError, match="Target 'y' of t.csv holds dates"):
        read(cells)


def test_dates_that_repeat_are_classes_only_if_they_are_few_or_asked_for():
    cells = [f"{1 + i % 28:02d}.11.2023" for i in range(90)]
    with pytest.raises(InvalidInputError, match="holds dates"):
        read(cells)
    assert read(cells, "classification").task == read(cells[:3] * 9).task == "classification"


def test_several_targets_are_no_classes():
    with pytest.raises(InvalidInputError, match="Several targets must be numbers"):
        read_target(pd.DataFrame({"y": [1, 2], "z": [1, 2]}), "classification", "t.csv")


NUMBERS = [str(i / 4) for i in range(30)]


@pytest.mark.parametrize("word", ["unknown", "n/a", "?", "-", "not measured"])
def test_a_word_among_numbers_is_an_unknown_target(word):
    target = read([*NUMBERS, word, *NUMBERS, word])
    assert target.task == "regression" and np.flatnonzero(~target.known).tolist() == [30, 61]


def test_words_among_numbers_are_named():
    assert read([*NUMBERS, "unknown", "?"]).unknown_words == ("?", "unknown")


def test_numbers_between_words_are_those_of_the_file():
    np.testing.assert_array_equal(read(["?", *NUMBERS]).y[1:], np.arange(30) / 4)


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "unknown"] * 9,  # two numbers and a word are three classes
        [*map(str, range(8)), "low"] * 9,  # eight of nine are less than nine of ten
        [f"{i:02d}" for i in range(12)] * 3 + ["other"],  # codes
        [*map(str, range(1, 20)), "7A"] * 3,
    ],
)
def test_what_is_not_nearly_all_numbers_stays_classes(cells):
    target = read(cells)
    assert (target.task, target.y.nunique()) == ("classification", len(set(cells)))


def test_words_are_classes_if_classes_are_asked_for():
    assert read([*map(str, range(20)), "unknown"] * 3, "classification").y.nunique() == 21


def test_whole_numbers_that_repeat_stay_classes_without_the_word():
    target = read([*map(str, range(20)), "unknown"] * 3)
    assert (target.task, set(target.y.dropna())) == ("classification", set(range(20)))


def test_a_word_among_the_numbers_of_several_targets_is_unknown():
    table = pd.DataFrame({"y": [*NUMBERS, "n/a"], "z": np.arange(31.0)})
    assert read_target(table, "auto", "t.csv").known.tolist() == 30 * [True] + [False]

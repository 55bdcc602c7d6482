"""Which rule a column gets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from distreduce.exceptions import InvalidInputError
from distreduce.tables.columns import MAX_LEVELS, Boolean, Category, Date, Dropped, Number, guess_column, is_row_number

DAYS = pd.date_range("2020-01-01", periods=40, freq="D")


def column(cells, **options):
    return pd.Series(cells, name="c", **options)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1.5, 2.5, None], Number),
        ([3, 1, 2, 2], Number),
        (pd.array([3, None, 2], "Int64"), Number),
        ([True, False, True], Boolean),
        ([True, None, False], Boolean),
        (["TRUE", "false", "true"], Boolean),
        (["u", "v", "u"], Category),
        (["0", "1", "3+", "1", "0", "2", "3+", "0"], Category),
        ([*["01", "02", "13", "59"] * 10, "2A"], Category),
        (["01", "02", "13", "59"] * 10, Category),
        ([f"{i:05d}" for i in range(40)], Dropped),
        (["2020-01-01", "2020-02-01", None], Date),
        (["2020-01-01 10:30", "2020-02-01T11:00:00Z"], Date),
        (["31.12.2020", "01.02.2021"], Date),
        (DAYS[:3], Date),
        (DAYS[:3].tz_localize("Asia/Tokyo"), Date),
        (pd.Categorical([1, 2, 1]), Category),
        ([None, None], Dropped),
        ([np.nan, np.inf], Dropped),
        ([7, 7, 7], Dropped),
        (["same", " same", None], Dropped),
        ([2**60, 2**61, 5], Dropped),
        (["Ann", "Bob", "Cid"], Dropped),
    ],
)
def test_the_kind_of_a_column(cells, kind):
    assert type(guess_column(column(cells))) is kind


def test_whole_numbers_of_any_length_are_left_out_as_too_long():
    for cells in ([2**60 + i for i in range(9)], [str(10**24 + i) for i in range(9)]):
        assert "too long to be exact" in guess_column(column(cells)).describe()


@pytest.mark.parametrize(
    ("cells", "layout"),
    [
        (["12/31/2020", "01/02/2020"], "%m/%d/%Y"),
        (["31/12/2020", "01/02/2020"], "%d/%m/%Y"),
        (["01/02/2020", "03/04/2020"], "%m/%d/%Y"),
        (["31.12.2020 10:30", "01.02.2020 23:59"], "%d.%m.%Y %H:%M"),
        (["01-Jan-2024", "15-feb-2024"], "%d-%b-%Y"),
        (["1 Jan 2024", "15 Feb 2024"], "%d %b %Y"),
        (["01/31/2024 01:00 AM", "02/01/2024 11:30 PM"], "%m/%d/%Y %I:%M %p"),
    ],
)
def test_the_order_of_day_and_month_is_that_which_reads_every_cell(cells, layout):
    assert guess_column(column(cells)).layout == layout


def test_the_most_frequent_levels_are_kept_and_the_rest_is_other():
    cells = [f"level {i:02d}" for i in range(MAX_LEVELS + 5) for _ in range(3 if i >= 5 else 2)]
    rule = guess_column(column(cells))
    assert rule.levels == tuple(f"level {i:02d}" for i in range(5, MAX_LEVELS + 5)) and rule.other


def test_numbers_asked_for_as_a_category_are_one():
    assert guess_column(column([75001.0, None, 69001.0, 75001.0]), as_category=True).levels == ("69001", "75001")


def test_a_text_that_nearly_always_differs_is_left_out():
    cells = [f"name {i}" for i in range(60)] * 1 + ["name 0"] * 20
    assert "60 values in 80 rows" in guess_column(column(cells)).reason


@pytest.mark.parametrize(
    "cells",
    [
        [f"{i},5" for i in range(40)],
        [*(str(i) for i in range(40)), "late"],
        [*(str(i % 20) for i in range(200)), "late"],
        [*(str(i % 20) for i in range(200)), "1,23"],
    ],
)
def test_spoilt_numbers_are_refused_rather_than_guessed(cells):
    with pytest.raises(InvalidInputError, match="Column 'c' looks like numbers but has .*--category 'c'"):
        guess_column(column(cells))


@pytest.mark.parametrize("write", ["{}", "{} m²", "€ {}.50"])
@pytest.mark.parametrize("word", ["unknown", "Unbekannt", "not available"])
def test_words_for_unknown_among_numbers_are_gaps(write, word):
    cells = column([*(write.format(1900 + i) for i in range(40)), word, word])
    rule = guess_column(cells)
    assert type(rule) is Number and rule.flag and rule.encode(rule.read(cells))[-2:, 1].tolist() == [1.0, 1.0]
    assert rule.fill == np.median(rule.read(cells.iloc[:40]))
    assert np.isnan(rule.read(column([word]))).all()  # in a new file
    assert type(guess_column(column([*map(str, range(40)), *[word] * 40]))) is Number  # every second building


def test_words_for_unknown_among_texts_are_a_level():
    for cells in (["red", "blue", "unknown"] * 9, ["1", "2", "unknown"] * 9, ["true", "false", "unknown"] * 9):
        assert "unknown" in guess_column(column(cells)).levels


@pytest.mark.parametrize(
    ("write", "unit"),
    [
        ("{:,}", ""),
        ("{} %", "%"),
        ("{}%", "%"),
        ("$ {:,}.50", "$"),
        ("€{:,}", "€"),
        ("EUR {:,}", "EUR"),
        ("{} lbs", "lbs"),
        ("{:,} km/h", "km/h"),
    ],
)
def test_numbers_with_a_unit_or_thousands_are_numbers(write, unit):
    numbers = range(950, 41_000, 1000)
    rule = guess_column(column([write.format(i) for i in numbers]))
    half = 0.5 * (".50" in write)
    assert (type(rule), rule.unit) == (Number, unit)
    assert rule.read(column([write.format(1250), "7", None])).tolist()[:2] == [1250 + half, 7]
    if unit:
        with pytest.raises(InvalidInputError, match="should hold numbers in .* but has '12 ml'"):
            rule.read(column(["12 ml"]))


@pytest.mark.parametrize(
    "cells", [["A12", "A7", "B3"] * 9, ["12A", "7A", "3A"] * 9, ["1,5", "x"] * 9, ["1-2", "3-4"] * 9]
)
def test_codes_are_not_numbers_with_a_unit(cells):
    assert isinstance(guess_column(column(cells)), Category)


def test_a_number_has_its_mean_its_spread_and_its_median():
    rule = guess_column(column([1.0, 2.0, 6.0, np.nan]))
    assert (rule.center, rule.fill, rule.flag) == (3.0, 2.0, True) and rule.scale == pytest.approx(np.sqrt(14 / 3))


@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%d", "%Y-%m-%d %H:%M", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p", "%d-%b-%Y",
     "%b %d, %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%Y %H:%M:%S"],
)  # fmt: skip
def test_dates_of_many_forms(form):
    days = pd.date_range("2020-01-01", periods=40, freq="5D")
    rule = guess_column(column(days.strftime(form)))
    assert isinstance(rule, Date) and rule.read(column(days.strftime(form))).tolist() == list(range(18262, 18462, 5))


def test_huge_numbers_stay_in_range():
    rule = guess_column(column([1e300, -1e300, 5e299]))
    assert np.isfinite(rule.encode(rule.read(column([1e300, -1e300])))).all()


@pytest.mark.parametrize(
    ("dates", "cycles"),
    [
        (DAYS[:10], ()),
        (DAYS, (7.0,)),
        (DAYS[::7], ()),
        (pd.date_range("2020-01-01", periods=30, freq="31D"), (365.2425, 7.0)),
        (pd.date_range("2020-01-01", periods=80, freq="h"), (1.0,)),
    ],
)
def test_a_cycle_counts_if_the_dates_span_it_twice_and_differ_in_it(dates, cycles):
    assert guess_column(column(dates)).cycles == cycles


SHUFFLED = np.random.default_rng(0).permutation(40)


@pytest.mark.parametrize(
    ("cells", "counts"),
    [
        ([4, 5, 6, 7], True),
        (SHUFFLED, True),
        (SHUFFLED + 1000, True),
        ([3, 4], False),
        ([3, 1, 2], False),  # by chance
        (SHUFFLED * 1.0, False),
        (SHUFFLED * 2, False),
        ([*SHUFFLED[:-1], SHUFFLED[0]], False),
        (pd.array([1, 2, None, 4], "Int64"), False),
    ],
)
def test_consecutive_numbers_count_rows_in_any_order(cells, counts):
    assert is_row_number(column(cells)) is counts

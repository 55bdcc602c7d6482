"""Which texts are a number with a unit."""

from __future__ import annotations

import pandas as pd
import pytest

from distreduce.exceptions import InvalidCellError, InvalidInputError
from distreduce.tables.cells import strip_unit
from distreduce.tables.columns import Category, Dropped, Number, guess_column
from distreduce.tables.prepare import prepare
from distreduce.tables.reading import locate_cells


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("15.5°C", "15.5", "°C"),
        ("15.5 °C", "15.5", "°C"),
        ("-3 ° F", "-3", "°F"),
        ("93°C", "93", "°C"),
        ("90°", "90", "°"),
        ("20℃", "20", "℃"),
        ("100 m2", "100", "m2"),
        ("100m2", "100", "m2"),
        ("57 m²", "57", "m²"),
        ("57m²", "57", "m²"),
        ("1,200 kg/m3", "1200", "kg/m3"),
        ("3.5 m3/h", "3.5", "m3/h"),
        ("9.8 m/s2", "9.8", "m/s2"),
        ("50.1 sq m", "50.1", "sq m"),
        ("1,250 sq. ft.", "1250", "sq. ft."),
        ("80 g CO2", "80", "g CO2"),
        ("120 g/km CO2", "120", "g/km CO2"),
        ("80  kg  CO2e", "80", "kg CO2e"),
        ("-$42", "-42", "$"),
        ("$-42", "-42", "$"),
        ("-€ 1,250.50", "-1250.50", "€"),
        ("15kg", "15", "kg"),
        ("2.4GHz", "2.4", "GHz"),
    ],
)
def test_a_number_with_a_common_unit(text, number, unit):
    assert strip_unit(text) == (number, unit)


@pytest.mark.parametrize(
    "text",
    ["room 12", "A4", "12A", "12 Main Street", "12 Elm St", "SW1A 1AA", "K1A 0B1", "12345-6789", "12 B2", "3 A4", "1-2"]
    + ["- 42", "42k", "3x4", "12 kg 5", "1,5", "4WD", "12 CO2 g", "7th", "5 to 9", "2024-Q1", "10.0.0.1/24", "12m"],
)
def test_what_is_not_a_number_with_a_unit_stays_as_it_is(text):
    assert strip_unit(text) == (text, "")


@pytest.mark.parametrize(
    ("write", "unit"),
    [("{}.5°C", "°C"), ("{} °C", "°C"), ("{} m2", "m2"), ("{}.1 sq m", "sq m"), ("{} g CO2", "g CO2"), ("-${}", "$")],
)
def test_a_column_with_a_common_unit_holds_numbers(write, unit):
    rule = guess_column(pd.Series([write.format(i) for i in range(20, 60)], name="c"))
    assert (type(rule), rule.unit) == (Number, unit)


def test_debts_and_prices_stand_in_one_column():
    rule = guess_column(pd.Series(["$120", "-$42", "$7", "$1,250"], name="c"))
    assert rule.read(pd.Series(["-$42", "$1,250"], name="c")).tolist() == [-42, 1250]


@pytest.mark.parametrize(
    "write", ["room {}", "A{}", "{} Main Street", "{} Elm St", "SW{} 1AA", "ID-{}", "{}-A", "{}/2024", "{}A"]
)
def test_rooms_addresses_postcodes_and_identifiers_are_texts(write):
    assert type(guess_column(pd.Series([write.format(i) for i in range(40)], name="c"))) is Dropped
    assert type(guess_column(pd.Series([write.format(i) for i in range(4)] * 10, name="c"))) is Category


def test_postcodes_with_various_letters_are_texts():
    letters = "ABCDEFGHIJ"
    cells = [f"{1000 + i} {letters[i % 10]}{letters[i // 10]}" for i in range(100)]  # as in the Netherlands
    assert type(guess_column(pd.Series(cells, name="c"))) is Dropped


@pytest.mark.parametrize(
    ("write", "unit", "mistake"),
    [
        ("{} m²", "m²", "late"),
        ("{} lbs", "lbs", "1504 kg"),
        ("{}%", "%", "x"),
        ("€ {:,}", "€", "1,5"),
        ("{},000", "", "late"),
    ],
)
@pytest.mark.parametrize("n_values", [120, 12])  # would be left out as text, and become levels
def test_one_typing_mistake_does_not_cost_a_column_its_unit(write, unit, mistake, n_values):
    cells = [write.format(50 + i % n_values) for i in range(120)]
    cells[57] = mistake
    said = f"looks like numbers{f' in {unit}' if unit else ''} but has '{mistake}' \\(in 1 row\\).*--category 'c'"
    with pytest.raises(InvalidCellError, match=said) as error:
        guess_column(pd.Series(cells, name="c"))
    assert error.value.row == 57


def test_the_line_of_a_typing_mistake_among_units_is_named(tmp_path):
    rows = [f"{50 + i} m²,{i**0.5}" for i in range(120)]
    rows[30] = "late,3"
    path = tmp_path / "t.csv"
    path.write_text("area,y\n" + "\n".join(rows), encoding="utf-8")
    with pytest.raises(InvalidInputError, match="'late' .* in line 32 of t.csv"), locate_cells(path):
        prepare(path, ["y"])


def test_all_columns_with_mistakes_are_named_at_once(tmp_path):
    """A laboratory's table has "<LOD" in forty columns: each run named one of them."""
    rows = [f"{50 + i},{i / 7},{i / 3},{i}" for i in range(40)]
    rows[3], rows[9] = "7,<LOD,3,1", "<LOD,1,<LOD,2"
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + "\n".join(rows), encoding="utf-8")
    with pytest.raises(InvalidCellError, match="'a' looks like .* Such cells are also in 'b', 'c'.$") as error:
        prepare(tmp_path / "t.csv", ["y"])
    assert error.value.row == 9


def test_a_number_in_another_unit_is_told_the_unit_of_the_fit():
    rule = guess_column(pd.Series([f"{i} kWh" for i in range(20, 60)], name="used"))
    with pytest.raises(InvalidCellError, match="'used' should hold numbers in kWh but has '3 MWh'"):
        rule.read(pd.Series(["3 MWh"], name="used"))


def test_a_column_of_two_units_is_text():
    cells = [f"{i} {'kg' if i % 2 else 'lbs'}" for i in range(120)]
    assert type(guess_column(pd.Series(cells, name="c"))) is Dropped


def test_words_among_targets_with_a_unit_are_unknown_targets(tmp_path):
    rows = [f"{i % 9}.5,{50 + i} m²" for i in range(120)]
    rows[30] = "3,unknown"
    (tmp_path / "t.csv").write_text("x,area\n" + "\n".join(rows), encoding="utf-8")
    target = prepare(tmp_path / "t.csv", ["area"]).target
    assert target.task == "regression" and target.unknown_words == ("unknown",) and target.known.sum() == 119

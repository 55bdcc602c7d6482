"""Decimal commas beside typing mistakes, units and levels."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce.exceptions import InvalidInputError
from distreduce.tables.cells import use_point
from distreduce.tables.prepare import prepare
from distreduce.tables.reading import locate_cells, read_chunks


@pytest.fixture
def write(tmp_path):
    """``write("new.csv", cells)`` writes a table with the columns a, b (decimal commas) and y, and returns its path."""

    def put(name, cells):
        rows = [f"{cell};{i % 13},25;{i % 7},5" for i, cell in enumerate(cells)]
        (tmp_path / name).write_text("a;b;y\n" + "\n".join(rows) + "\n", encoding="utf-8")
        return tmp_path / name

    return put


def numbers(n=150):
    return [f"{10 + i},98" for i in range(n)]


def spoilt(cells):
    return [*cells[:4], "abc", *cells[5:]]


def apply(recipe, path):
    with locate_cells(path):
        return np.vstack([recipe.matrix(chunk, path.name)[0] for chunk in read_chunks(path, recipe.as_text)])


def test_fit_blames_the_mistake_and_not_the_commas(write):
    path = write("t.csv", spoilt(numbers()))
    with pytest.raises(InvalidInputError, match=r"has 'abc' \(in 1 row\).* line 6 of t.csv"), locate_cells(path):
        prepare(path, ["y"])


@pytest.mark.parametrize("n", [150, 6])
def test_predict_blames_the_mistake_and_not_the_commas(write, n):
    recipe = prepare(write("t.csv", numbers()), ["y"]).recipe
    with pytest.raises(InvalidInputError, match=r"has 'abc' \(in 1 row\).* line 6 of new.csv"):
        apply(recipe, write("new.csv", spoilt(numbers(n))))


def test_levels_with_commas_are_those_of_new_files(write):
    cells = ["1,5", "2,5", "none yet"] * 20
    data = prepare(write("t.csv", cells), ["y"])
    assert data.recipe.columns[:3] == ["a = 1,5", "a = 2,5", "a = none yet"]
    np.testing.assert_array_equal(apply(data.recipe, write("new.csv", cells)), data.X)


@pytest.mark.parametrize("other", [";{},5", ";{}"])  # whether another column decides, or the unit has to
@pytest.mark.parametrize(
    ("write_cell", "unit"), [("{},11 €", "€"), ("€ {},5", "€"), ("{},5%", "%"), ("1.{},25 €", "€"), ("-{},5 °C", "°C")]
)
def test_decimal_commas_go_with_units(tmp_path, write_cell, unit, other):
    rows = [write_cell.format(100 + i) + other.format(i % 7) for i in range(60)]
    rows += ["?" + other.format(1)] * 20
    path = tmp_path / "t.csv"
    path.write_text("a;y\n" + "\n".join(rows) + "\n", encoding="utf-8")
    data = prepare(path, ["y"])
    (rule,) = data.recipe.rules
    first = float(write_cell.format(100).replace(unit, "").replace(".", "").replace(",", "."))
    assert (rule.unit, rule.center) == (unit, pytest.approx(first + 29.5 * np.sign(first)))
    assert any("decimal comma" in note for note in data.notes)
    np.testing.assert_array_equal(apply(data.recipe, path), data.X)


def test_thousands_before_units_are_thousands_if_no_number_has_another_comma(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;y\n" + "\n".join(f"€ {341 + i},750;{i % 7}" for i in range(60)) + "\n", encoding="utf-8")
    assert prepare(path, ["y"]).recipe.rules[0].fill > 300_000


def test_a_comma_in_a_text_does_not_decide_on_the_decimal_sign(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{('1,2 ethyl', 'water', 'salt')[i % 3]}\t{i},250\t{i % 7}" for i in range(1, 61)]
    path.write_text("a\tb\ty\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="may mean thousands or a fraction"):
        prepare(path, ["y"])


def test_truths_with_gaps_stand_beside_decimal_commas(write):
    assert prepare(write("t.csv", ["True", "", "False"] * 20), ["y"]).recipe.rules[0].kind == "boolean"


@pytest.mark.parametrize(
    ("text", "pointed"),
    [
        ("1,5", "1.5"),
        ("-0,25", "-0.25"),
        ("1.250,5", "1250.5"),
        ("1.250", "1250"),
        ("1.250.000", "1250000"),
        ("12", "12"),
        ("1.5", "1.5"),
        ("31.12.2020", "31.12.2020"),
        ("1,2,3", "1,2,3"),
        ("a,5", "a,5"),
    ],
)
def test_a_number_with_a_comma_gets_a_point(text, pointed):
    assert use_point(text) == pointed

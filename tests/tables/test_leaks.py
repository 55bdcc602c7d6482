"""What is said of a table before the fit: columns that give the target away, codes, and rare classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from distreduce.tables.aside import Aside
from distreduce.tables.prepare import prepare


@pytest.mark.parametrize(
    ("leak", "task"),
    [
        (lambda y, rng: np.where(y > 0, "yes", "no"), "classes"),
        (lambda y, rng: np.where(y > 0, 3.5, 1.5) + rng.normal(size=len(y)) / 10, "classes"),
        (lambda y, rng: 1.2 * y, "numbers"),
        (lambda y, rng: -np.exp(y), "numbers"),
        (lambda y, rng: y + 0.05 * rng.normal(size=len(y)), "numbers"),  # R² 0.998, which pages round to 1.00
        (lambda y, rng: np.where(rng.random(len(y)) < 0.2, np.nan, y), "numbers"),
        (lambda y, rng: np.where(rng.random(len(y)) < 0.2, "", np.where(y > 0, "yes", "no")), "classes"),
        (lambda y, rng: np.where(y > 0, "", rng.integers(1, 90, len(y))), "classes"),  # such as days until death
    ],
)
def test_a_column_that_tells_the_target_is_named(tmp_path, rng, leak, task):
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    target = np.where(y > 0, "a", "b") if task == "classes" else y
    pd.DataFrame({"good": x, "alive": leak(y, rng), "y": target}).to_csv(tmp_path / "t.csv", index=False)
    notes = prepare(tmp_path / "t.csv", ["y"]).notes
    assert any(note.startswith("Column 'alive' alone tells the target") and "--drop 'alive'" in note for note in notes)


def test_several_leaks_are_left_out_by_one_command(tmp_path, rng):
    y = rng.normal(size=100)
    pd.DataFrame({"a": 2 * y, "b": -y, "x": rng.normal(size=100), "y": y}).to_csv(tmp_path / "t.csv", index=False)
    assert prepare(tmp_path / "t.csv", ["y"]).notes[0].endswith("leave them out: --drop 'a' --drop 'b'.")


def test_a_row_of_totals_is_named(tmp_path, rng):
    """A sheet with "Total" in its last row had R² −26, and nothing said why."""
    table = pd.DataFrame({"town": rng.choice(["Rome", "Oslo"], 60), "hours": rng.gamma(2, 5, 60).round(1)})
    table["note"], table["pay"] = "", (100 * table["hours"] * rng.uniform(0.5, 1.5, 60)).round(2)
    assert not any("sum of all" in note for note in write_and_read(table, tmp_path, "pay"))
    totals = {"town": "Total", "hours": table["hours"].sum(), "pay": table["pay"].sum()}
    whole = pd.concat([table, pd.DataFrame([totals, {"town": "Source: our books"}])])
    said = "The last number in 'hours', 'pay' is the sum of all others: if it stands in a row of totals, delete it."
    assert said in write_and_read(whole, tmp_path, "pay")
    tiny = table.assign(farad=np.r_[rng.uniform(1e-12, 2e-12, 59), 9e-12])  # nearly zero is not nearly equal
    assert not any("sum of all" in note for note in write_and_read(tiny, tmp_path, "pay"))


def test_names_that_come_again_may_be_groups(tmp_path, rng):
    """A table of 768 visits of 357 patients was read without a word on --group."""
    table = pd.DataFrame({"patient": [f"{k:05d}" for k in rng.integers(0, 90, 300)], "age": rng.normal(size=300)})
    table["town"], table["y"] = rng.choice(["Rome", "Oslo"], 300), rng.normal(size=300)
    notes = write_and_read(table, tmp_path, "y")
    found = [note for note in notes if note.startswith("Names that come again: 'patient' (")]
    assert len(found) == 1 and "fit with --group 'patient'" in found[0] and "town" not in found[0]
    assert not any("come again" in note for note in write_and_read(table, tmp_path, "y", aside=Aside(group="patient")))


def write_and_read(table, folder, target, **options):
    table.to_csv(folder / "t.csv", index=False)
    return prepare(folder / "t.csv", [target], **options).notes


def test_a_good_feature_is_not_a_leak(tmp_path, rng):
    x = rng.normal(size=200)
    pd.DataFrame({"x": x, "y": x + rng.normal(size=200) / 5}).to_csv(tmp_path / "t.csv", index=False)
    assert not any("alone tells" in note for note in prepare(tmp_path / "t.csv", ["y"]).notes)


def test_few_whole_numbers_may_be_codes_and_rare_classes_are_named(tmp_path, rng):
    table = pd.DataFrame({"trust": rng.integers(1, 5, 90), "member": rng.integers(0, 2, 90), "x": rng.normal(size=90)})
    table["y"] = ["a"] * 50 + ["b"] * 37 + ["c"] * 3
    table.to_csv(tmp_path / "t.csv", index=False)
    notes = prepare(tmp_path / "t.csv", ["y"]).notes
    assert "Few whole numbers, read as amounts: 'trust'. If they are codes: --category 'trust'." in notes
    assert any(note.startswith("Few rows: 'c' (3).") for note in notes)
    assert not any("amounts" in note for note in prepare(tmp_path / "t.csv", ["y"], categories=["trust"]).notes)


def test_words_for_unknown_among_numbers_are_named(tmp_path):
    rows = [f"{1900 + i % 50},{i % 7}" for i in range(200)]
    rows[3:6] = ["unbekannt,3", "Unknown,2", "unbekannt,1"]
    (tmp_path / "t.csv").write_text("built,y\n" + "\n".join(rows), encoding="utf-8")
    data = prepare(tmp_path / "t.csv", ["y"])
    assert "Words among numbers, read as missing: 'unbekannt' in 'built' (2), 'Unknown' in 'built' (1)." in data.notes
    assert any("Missing cells are filled: 'built' (3)" in note for note in data.notes) and data.usable.all()


def test_missing_texts_are_a_level_and_not_filled(tmp_path):
    """ "Missing cells are filled: 'coma' (185)" was said of a text, which becomes the level "missing"."""
    table = pd.DataFrame({"coma": ["deep", None, None, "stupor"] * 25, "age": np.arange(100.0), "y": [0, 1] * 50})
    table.loc[7, "age"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    hint = " --missing drop leaves these rows out, --missing refuse stops."
    level = """Missing cells are a level of their own, "missing": 'coma' (50)."""
    filled = "Missing cells are filled: 'age' (1)."
    assert f"{filled} {level}{hint}" in prepare(tmp_path / "t.csv", ["y"]).notes
    assert level + hint in prepare(tmp_path / "t.csv", ["y"], leave_out=["age"]).notes


def test_a_number_that_may_stand_for_missing_cells_is_named(tmp_path):
    """-999 among years was read as a year; 99 that is near other values, and a single far one, are values."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"year": rng.integers(1900, 2020, 90), "age": rng.integers(20, 100, 90), "y": rng.normal(size=90)}
    )
    table.loc[[3, 40, 77], "year"], table.loc[[5, 6], "age"], table["size"] = -999, 99, rng.normal(size=90)
    table.loc[8, "size"] = 9999
    table.to_csv(tmp_path / "t.csv", index=False)
    (said,) = [note for note in prepare(tmp_path / "t.csv", ["y"]).notes if "Far from" in note]
    assert said.startswith("Far from all other values: -999 in 'year' (3). If this is a code for missing cells")
    table.loc[[1, 2], "y"] = 9999.0  # as a broken sensor writes it
    table.to_csv(tmp_path / "t.csv", index=False)
    assert any("-999 in 'year' (3), 9999 in 'y' (2)." in note for note in prepare(tmp_path / "t.csv", ["y"]).notes)

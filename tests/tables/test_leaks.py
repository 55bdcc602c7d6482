"""What is said of a table before the fit: columns that give the target away, codes, and rare classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from distreduce.tables.prepare import prepare


@pytest.mark.parametrize(
    ("leak", "task"),
    [
        (lambda y, rng: np.where(y > 0, "yes", "no"), "classes"),
        (lambda y, rng: np.where(y > 0, 3.5, 1.5) + rng.normal(size=len(y)) / 10, "classes"),
        (lambda y, rng: 1.2 * y, "numbers"),
        (lambda y, rng: -np.exp(y), "numbers"),
    ],
)
def test_a_column_that_tells_the_target_is_named(tmp_path, rng, leak, task):
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    target = np.where(y > 0, "a", "b") if task == "classes" else y
    pd.DataFrame({"good": x, "alive": leak(y, rng), "y": target}).to_csv(tmp_path / "t.csv", index=False)
    notes = prepare(tmp_path / "t.csv", ["y"]).notes
    assert any(note.startswith("Column 'alive' alone tells the target") and "--drop 'alive'" in note for note in notes)


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

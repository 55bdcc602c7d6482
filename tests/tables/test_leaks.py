"""Columns that give the target away are named, and good features are not."""

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

"""What tells a prototype from the rest, against plain means over its samples and all others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from distreduce.report.columns import find_contrasts
from distreduce.report.content import Subject, collect_rows

OWN = np.array([0] * 40 + [1] * 60)


def test_columns_come_by_their_difference_in_standard_deviations(rng):
    table = pd.DataFrame(rng.normal(size=(100, 8)), columns=list("abcdefgh")) + 0.1
    table.loc[OWN == 0, "c"] += 3
    table.loc[OWN == 0, "f"] -= 1.2
    gaps = (table[OWN == 0].mean() - table[OWN == 1].mean()) / table.std(ddof=0)
    expected = gaps.abs().sort_values(ascending=False)
    found = find_contrasts(table, OWN, np.array([0]))[0]
    assert [name for name, _ in found] == expected.index[expected >= 0.3].tolist()[:5]
    inside, outside = table["c"][OWN == 0].mean(), table["c"][OWN == 1].mean()
    assert found[0] == ("c", f"high ({inside:.3g} against {outside:.3g})".replace("-", "−"))
    assert dict(found)["f"].startswith("low (")


def test_a_category_is_described_by_its_most_over_represented_level():
    sex = np.where(np.arange(100) % 5, "female", "male").astype(object)
    sex[:40] = "male"
    sex[0] = None  # unknown, so 39 are known
    found = find_contrasts(pd.DataFrame({"sex": sex}), OWN, np.array([1, 0]))
    texts = [text.replace("\N{NO-BREAK SPACE}", " ") for [(_, text)] in found]
    assert texts == ["female (80 % against 0 %)", "male (100 % against 20 %)"]


@pytest.mark.parametrize("kind", [float, str])
def test_missing_cells_tell_a_prototype_apart_as_a_category_does(kind):
    """Of 109 samples without the father's age, in a table where few lack it, the page did not mention it."""
    cells = pd.Series(np.arange(100) % 3).map(kind).mask((OWN == 0) & (np.arange(100) != 7)).mask(np.arange(100) == 90)
    table = pd.DataFrame({"fage": cells, "few": pd.Series(np.arange(100) % 3).map(kind).mask(np.arange(100) < 3)})
    found = find_contrasts(table, OWN, np.arange(2))
    texts = [[(name, text.replace("\N{NO-BREAK SPACE}", " ")) for name, text in each] for each in found]
    assert ("fage", "missing (98 % against 2 %)") in texts[0] and str(texts).count("missing") == 1


def test_dates_are_early_or_late():
    days = pd.Series(pd.date_range("2024-01-01", periods=100))
    found = find_contrasts(pd.DataFrame({"day": days}), OWN, np.array([0, 1]))
    assert found[0] == [("day", "early (2024-01-20 against 2024-03-10)")] and found[1][0][1].startswith("late")


def test_a_prototype_without_any_date_is_not_compared():
    """A prototype of a row without a date ended the page in "Invalid value NaN"."""
    days = pd.Series(pd.date_range("2024-01-01", periods=100)).mask(OWN == 0)
    assert find_contrasts(pd.DataFrame({"day": days}), OWN, np.array([0, 1]))[1] == []


def test_years_have_no_thousands_marks():
    table = pd.DataFrame({"built": np.r_[np.full(39, 1993.0), np.nan, np.full(60, 1970.0)], "area": 1.5})
    assert find_contrasts(table, OWN, np.array([0]))[0] == [("built", "high (1993 against 1970)")]
    assert find_contrasts(table + 0.25, OWN, np.array([0]))[0] == [("built", "high (1,993 against 1,970)")]
    cells = collect_rows([[0, 39]], Subject(None, None, None, table, np.arange(100), None))["cells"]
    assert cells == [["1993", "–"], ["1.5", "1.5"]]


def test_weights_count_as_copies(rng):
    table = pd.DataFrame({"a": rng.normal(size=100), "b": rng.choice(["x", "y"], 100)})
    weights = rng.integers(0, 4, size=100)
    twice = np.repeat(np.arange(100), weights)
    expected = find_contrasts(table.iloc[twice], OWN[twice], np.arange(2))
    assert find_contrasts(table, OWN, np.arange(2), weights.astype(float)) == expected


@pytest.mark.parametrize(
    "column", [[1.0] * 100, [None] * 100, [np.nan] * 100, [f"r{k}" for k in range(100)], ["one"] * 100],
    ids=["constant", "empty", "missing", "names", "one level"],
)  # fmt: skip
def test_columns_that_tell_nothing_are_omitted(column):
    assert find_contrasts(pd.DataFrame({"a": column}), OWN, np.arange(2)) == [[], []]


def test_prototypes_without_samples_and_with_all_of_them_have_nothing():
    table = pd.DataFrame({"a": np.arange(100.0), "b": ["x", "y"] * 50})
    assert find_contrasts(table, np.zeros(100, dtype=int), np.arange(2)) == [[], []]


def test_numbers_whose_squares_overflow_are_compared():
    found = find_contrasts(pd.DataFrame({"a": np.where(OWN == 0, 1e300, -1e300)}), OWN, np.array([0]))
    assert found == [[("a", "high (1e+300 against −1e+300)")]]

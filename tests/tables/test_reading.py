"""Files other than text."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from distreduce.exceptions import InvalidInputError, MissingDependencyError
from distreduce.tables.reading import read_table


def test_the_first_sheet_of_a_workbook_is_read(tmp_path):
    pytest.importorskip("openpyxl")
    table = pd.DataFrame({"size": [1.5, None, 3.0], "zip": ["01234", "80331", "80331"], "y": [1, 2, 3]})
    table.to_excel(tmp_path / "t.xlsx", index=False)
    found = read_table(tmp_path / "t.xlsx", ["y"])
    assert found.features["zip"].tolist() == ["01234", "80331", "80331"] and found.features["size"].sum() == 4.5
    assert found.targets["y"].tolist() == [1, 2, 3]


def test_a_title_above_the_names_of_a_sheet_is_said_to_be_one(tmp_path):
    pytest.importorskip("openpyxl")
    table = pd.DataFrame([["Payroll 2024", None], [None, None], ["grade", "pay"], [1, 2000.0], [2, 2400.0]])
    table.to_excel(tmp_path / "t.xlsx", index=False, header=False)
    with pytest.raises(InvalidInputError, match="first line of t.xlsx .'Payroll 2024'. looks like a title"):
        read_table(tmp_path / "t.xlsx", ["pay"])


def test_a_workbook_without_openpyxl_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)  # as if it were not there
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(MissingDependencyError, match="pip install openpyxl"):
        read_table(tmp_path / "t.xlsx", ["y"])

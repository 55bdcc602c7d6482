"""The tables that the commands write."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from distreduce.cli._tables import escape_formula, unescape_formula, write_table

TEXTS = [
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "+1+2",
    "-x",
    "\t=1",
    "'=x",
    "''-x",
    "-",
    "-1.5",
    "+3e4",
    "=",
    "a=b",
    "",
    "'",
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_spreadsheet_sees_a_formula_and_the_text_comes_back(text):
    written = escape_formula(text)
    assert unescape_formula(written) == text
    assert written[:1] not in set("=+-@\t\r") or float(written)


def test_numbers_and_gaps_are_written_as_they_are():
    table = pd.DataFrame({"=a": [-1.5, 2.0], "b": ["-1", None], "c": ["=1", "x"]})
    assert _write(table) == "'=a,b,c\n-1.5,-1,'=1\n2.0,,x\n"
    assert _write(table, raw=True) == "=a,b,c\n-1.5,-1,=1\n2.0,,x\n"


def _write(table, **options):
    place = io.StringIO()
    write_table(table, place, **options)
    return place.getvalue()

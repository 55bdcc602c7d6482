"""A cell's identity is all of its fields and survives JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distreduce_paper import Cell

NAMES = st.text(max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NAMES
CELLS = st.builds(
    Cell, NAMES, NAMES, NAMES, st.integers(0, 99), st.dictionaries(NAMES, SCALARS, max_size=4), st.booleans()
)


@settings(max_examples=30)
@given(CELLS)
def test_a_cell_survives_json_and_another_order_of_its_parameters(cell):
    turned = Cell.from_dict({**cell.as_dict(), "parameters": dict(reversed(cell.parameters.items()))})
    assert Cell.from_dict(json.loads(json.dumps(cell.as_dict()))).key == cell.key
    assert {turned, cell} == {cell}


@pytest.mark.parametrize(
    "change",
    [{"experiment": "b"}, {"data": "b"}, {"method": "b"}, {"seed": 1}, {"parameters": {"m": 2}}, {"quick": True}],
)
def test_every_field_is_part_of_the_identity(change):
    cell = Cell("a", "a", "a", 0, {"m": 1})
    assert Cell.from_dict({**cell.as_dict(), **change}).key != cell.key


def test_what_a_record_holds_beyond_the_cell_is_left_aside():
    cell = Cell("a", "b", "c", 0)
    assert Cell.from_dict({**cell.as_dict(), "result": {}}) == cell


def test_a_cell_in_words():
    assert str(Cell("eta", "coil20", "SDR", 3, {"eta": 10})) == "eta: SDR on coil20, eta=10, seed 3"

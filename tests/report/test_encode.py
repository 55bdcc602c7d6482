"""Text and numbers survive the way into the page, and none of them can leave its place in it."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distreduce.interop._predictor import pack
from distreduce.report.columns import MISSING, cell_text, quantise
from distreduce.report.renderer import as_json

TEXTS = st.text() | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028", "&lt;", "\ud800", '"\\'])


class Scripts(HTMLParser):
    """The contents of script elements, as a browser would cut them."""

    def __init__(self):
        super().__init__()
        self.found, self.inside = [], False

    def handle_starttag(self, tag, attrs):
        self.inside = tag == "script"
        self.found += [""] if self.inside else []

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.found[-1] += data


@given(st.dictionaries(TEXTS, st.lists(TEXTS | st.floats(allow_nan=False, allow_infinity=False))))
def test_json_inside_a_script_element_reads_back_as_it_was(document):
    parser = Scripts()
    parser.feed(f"<script>{as_json(document)}</script><p>after</p>")
    assert [json.loads(text) for text in parser.found] == [document]


def test_json_refuses_what_a_browser_could_not_read():
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json([float("nan")])


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "f4"])
def test_packed_arrays_read_back_as_little_endian(kind, unpack):
    values = np.array([[0, 1, 2], [3, 200, 7]])
    np.testing.assert_array_equal(unpack(pack(values, kind)), values.ravel())


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=20))
def test_steps_read_back_to_half_a_step(values):
    values = np.array(values)
    low, high = values.min(), values.max()
    back = low + (high / (MISSING - 1) - low / (MISSING - 1)) * quantise(values, low, high)
    step = (high / 2 - low / 2) / (MISSING - 1)
    assert np.abs(back - values).max() <= step * 1.001 + 1e-12 * np.abs(values).max() + np.nextafter(0.0, 1.0)


def test_numbers_that_are_not_finite_are_missing():
    assert quantise(np.array([0.0, np.nan, 1.0, np.inf]), 0.0, 1.0).tolist() == [0, MISSING, MISSING - 1, MISSING]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (float("nan"), "–"), (pd.NaT, "–"), (True, "yes"), (3, "3"), (-2.0, "−2"),
        (1234567.0, "1,234,567"), (0.123456, "0.1235"), (668750.3, "668,750"), (float("inf"), "inf"),
        (pd.Timestamp("2024-02-29"), "2024-02-29"), (pd.Timestamp("2024-02-29 12:30"), "2024-02-29 12:30:00"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)  # fmt: skip
def test_a_cell_is_written_as_people_read_it(value, text):
    assert cell_text(value) == text

"""The paper's numbers and the verdicts on ours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from distreduce_paper import published
from distreduce_paper.published import PublishedNumber, distance, get_published, judge

LOWER = PublishedNumber(0.14, 0.02, higher_is_better=False)
HIGHER = PublishedNumber(0.95, 0.0, higher_is_better=True)


def test_printed_reads_the_papers_table():
    assert get_published("gp_regression", "SDR-GP", "concrete", "mse") == PublishedNumber(
        0.13, 0.02, higher_is_better=False
    )


def test_printed_is_none_where_the_paper_has_nothing():
    assert get_published("gp_regression", "SDR-GP", "a set of one's own", "mse") is None


def test_paper_json_holds_what_the_latex_source_says():
    # Typed from the paper's runtime table, not from the file under test.
    assert get_published("runtime_seconds_a100", "SDR-GP", "mnist2k", "seconds") == PublishedNumber(17.47, 2.55, False)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.10, 0.12], 1.5), ([0.14], 0.0), ([0.18], -2.0)],
)
def test_distance_is_positive_where_ours_is_better(values, expected):
    assert distance(values, LOWER) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "paper_number", "expected"),
    [
        ([0.16], LOWER, "equal"),  # one deviation exactly, whatever binary fractions make of it
        ([0.1601], LOWER, "worse"),
        ([0.1199], LOWER, "better"),
        ([0.945], HIGHER, "equal"),  # rounds to what the paper prints
        ([0.944], HIGHER, "worse"),
        ([0.956], HIGHER, "better"),
        ([-np.inf], HIGHER, "worse"),
    ],
)
def test_verdict(values, paper_number, expected):
    assert judge(values, paper_number) == expected


def test_a_number_without_deviation_is_compared_by_its_digits():
    assert judge([0.484], PublishedNumber(0.48, None, higher_is_better=True)) == "equal"


def test_every_data_set_of_the_paper_has_a_label():
    content = json.loads(Path(published.__file__).with_name("published.json").read_text("utf-8"))
    names = {data for table in content["tables"].values() for row in table["rows"].values() for data in row}
    assert names <= set(content["labels"])

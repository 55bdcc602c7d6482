"""Our numbers beside the paper's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from distreduce_paper.report.blocks import Table, Text
from distreduce_paper.report.comparison import DASH, comparison_tables, count_verdicts, format_mean, format_number

METRICS = {"mll": "mll", "mse": "mse"}


def cells(method="SDR-GP", data="boston", mse=(0.10, 0.11, 0.12, 0.13, 0.14), mll=-0.32, quick=False):
    return [
        {"data": data, "method": method, "seed": seed, "quick": quick, "mll": mll, "mse": value}
        for seed, value in enumerate(mse)
    ]


def counterpart(method):
    return "SDR-GP" if method.startswith("SDR") else None


def tables(rows, **options):
    return comparison_tables(pd.DataFrame(rows), "gp_regression", METRICS, counterpart, **options)


def test_mean_and_sample_deviation_over_seeds():
    # Mean 0.12; sample variance 0.001 / 4.
    assert tables(cells())[0].frame.loc[0, "MSE"] == "0.120 ± 0.016"


def test_the_papers_number_stands_beside_ours_as_printed():
    assert tables(cells())[0].frame.loc[0, "MSE, paper"] == "0.14 ± 0.08"


def test_difference_is_in_deviations_of_the_paper_and_positive_where_better():
    # Concrete: the paper has 0.13 ± 0.02, lower is better.
    row = tables(cells(data="concrete", mse=[0.10] * 5))[0].frame.loc[0]
    assert row["MSE, difference"] == "+1.5"


def test_verdicts_mark_the_difference():
    table = tables(cells(data="concrete", mse=[0.10] * 5, mll=-0.50))[0]
    assert table.verdicts == {(0, "MSE, difference"): "better", (0, "MLL, difference"): "worse"}


def test_a_line_counts_the_verdicts_of_all_tables():
    blocks = tables(cells(data="concrete", mse=[0.10] * 5, mll=-0.50) + cells())
    assert blocks[-1] == Text("1 better, 2 equal, 1 worse than the paper.")


def test_a_table_a_data_set_in_the_order_of_the_frame():
    blocks = tables(cells(data="energy") + cells(data="boston"))
    assert [block.caption.split(" ")[0] for block in blocks if isinstance(block, Table)] == ["Energy", "Boston"]


def test_methods_keep_the_order_of_the_frame():
    table = tables(cells("SDR-GP, paper's recipe") + cells("ARD GP") + cells())[0]
    assert list(table.frame["Method"]) == ["SDR-GP, paper's recipe", "ARD GP", "SDR-GP"]


def test_a_method_that_the_paper_lacks_shows_dashes():
    row = tables(cells("ARD GP"))[0].frame.loc[0]
    assert list(row[["MSE, paper", "MSE, difference"]]) == [DASH, DASH]


def test_a_data_set_that_the_paper_lacks_has_no_verdict():
    assert tables(cells(data="diabetes"))[0].verdicts == {}


def test_fewer_seeds_are_said():
    assert tables(cells(mse=[0.1, 0.2, 0.3]))[0].frame.loc[0, "MSE"] == "0.200 ± 0.100 (3 seeds)"


def test_one_seed_has_no_deviation():
    assert tables(cells(mse=[0.1]))[0].frame.loc[0, "MSE"] == "0.100 (1 seed)"


def test_a_seed_without_the_number_is_left_out_and_counted():
    assert tables(cells(mse=[0.1, 0.1, 0.1, 0.1, None]))[0].frame.loc[0, "MSE"] == "0.100 ± 0.000 (4 seeds)"


def test_a_method_without_any_number_shows_a_dash():
    rows = cells() + cells("SDR-GP, paper's recipe", mse=[np.nan] * 5)
    assert tables(rows)[0].frame.loc[1, "MSE"] == DASH


def test_an_infinite_number_is_worse_and_shown():
    table = tables(cells(mll=-np.inf))[0]
    assert (table.frame.loc[0, "MLL"], table.verdicts[0, "MLL, difference"]) == ("−inf", "worse")


def test_quick_cells_get_no_verdict():
    blocks = tables(cells(quick=True))
    assert len(blocks) == 1 and not blocks[0].verdicts and not blocks[0].comparisons


def test_a_missing_metric_is_left_out():
    frame = pd.DataFrame(cells()).drop(columns="mll")
    table = comparison_tables(frame, "gp_regression", METRICS, counterpart)[0]
    assert list(table.frame.columns) == ["Method", "MSE", "MSE, paper", "MSE, difference"]


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame(cells())[["data", "method", "quick"]]])
def test_nothing_to_show_gives_no_blocks(frame):
    assert comparison_tables(frame, "gp_regression", METRICS, counterpart) == []


def test_the_reason_is_kept_where_ours_is_worse():
    rows = cells(data="concrete", mse=[0.10] * 5, mll=-0.50)
    found = tables(rows, reason=lambda method, data: f"{method} on {data}.")[0].comparisons
    assert {one.metric: one.reason for one in found} == {"MSE": None, "MLL": "SDR-GP on concrete."}


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.2871, "−0.287"), (58.931, "58.9"), (1234.5, "1234"), (0.00432, "0.0043"), (0.0, "0.000"), (9.9996, "10.00")],
)
def test_number_has_about_three_digits(value, text):
    assert format_number(value) == text


def test_mean_and_deviation_share_their_decimals():
    assert format_mean(np.array([10.0, 14.0])) == "12.0 ± 2.8"


def test_counted_names_all_three():
    assert count_verdicts(["worse", "better", "worse"]) == "1 better, 0 equal, 2 worse"

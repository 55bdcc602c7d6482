"""The scores that a fit states: units of the targets, and intervals of the model's own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from distreduce.exceptions import InvalidInputError
from distreduce.metrics import regression_scores
from distreduce.metrics.held_out import held_out_scores


@pytest.fixture
def said(rng):
    """Truth, means and deviations of two targets of very different units."""
    y = rng.normal(size=(40, 2)) * [100.0, 0.01]
    return y, y + rng.normal(size=(40, 2)) * [50.0, 0.002], np.full((40, 2), 1.0) * [50.0, 0.002]


def test_r2_is_the_mean_over_the_targets(said):
    y, mean, std = said
    assert held_out_scores(y, mean, std)["r2"] == pytest.approx(r2_score(y, mean))


def test_densities_are_those_of_targets_in_their_scale(said):
    y, mean, std = said
    scale = np.array([100.0, 0.01])
    assert (
        held_out_scores(y, mean, std, scale=scale)["mll"]
        == regression_scores(y / scale, mean / scale, std / scale)["mll"]
    )


def test_the_error_in_units_is_that_of_a_single_target(said):
    y, mean, std = said
    assert "rmse" not in held_out_scores(y, mean, std)
    assert held_out_scores(y[:, 0], mean[:, 0], scale=3.0)["rmse"] == np.sqrt(np.mean((y[:, 0] - mean[:, 0]) ** 2))


def test_levels_take_the_place_of_gaussian_intervals(said):
    scores = held_out_scores(*said, levels=np.full((40, 2), 0.95))
    assert scores["coverage_90"] == 0.0 and scores["mace"] > 0.4


def test_a_single_row_has_no_r2():
    assert np.isnan(held_out_scores([1.0], [1.0], [1.0])["r2"])


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, [1.0, 2.0, 3.0], "wide"])
def test_a_scale_of_no_use_is_refused(said, scale):
    with pytest.raises(InvalidInputError, match="scale"):
        held_out_scores(*said, scale=scale)


@pytest.mark.parametrize("levels", [np.full(40, 0.5), np.full((40, 2), 1.5), np.full((40, 2), np.nan)])
def test_levels_of_no_use_are_refused(said, levels):
    with pytest.raises(InvalidInputError, match="levels"):
        held_out_scores(*said, levels=levels)

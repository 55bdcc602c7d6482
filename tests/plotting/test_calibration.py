"""Calibration curves, against uncertainty-toolbox."""

from __future__ import annotations

import numpy as np
import pytest
import uncertainty_toolbox as uct
from matplotlib.figure import Figure
from plotting.iris_plots import LENGTHS, axes
from scipy.stats import binomtest

from distreduce.exceptions import InvalidInputError
from distreduce.metrics.held_out import wilson_interval
from distreduce.plotting import plot_calibration
from distreduce.plotting.calibration import draw_reliability


@pytest.fixture
def predictions(rng) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """An over-confident and an under-confident model of one target."""
    mean, std = rng.standard_normal(80), 0.2 + rng.random(80)
    y = mean + std * rng.standard_normal(80)
    return {"bold": (y, mean, 0.5 * std), "shy": (y, mean, 2 * std)}


def test_calibration_draws_the_curve_of_uncertainty_toolbox(predictions):
    drawn = plot_calibration(predictions, axes()).get_lines()[2].get_xydata()
    y, mean, std = predictions["shy"]
    np.testing.assert_allclose(drawn.T, uct.get_proportion_lists_vectorized(mean, std, y, num_bins=99), atol=1e-12)


def test_calibration_has_the_ideal_diagonal(predictions):
    drawn = plot_calibration(predictions, axes()).get_lines()[0].get_xydata()
    np.testing.assert_array_equal(drawn, [[0, 0], [1, 1]])


def test_calibration_names_each_model_with_its_error(predictions):
    errors = [uct.mean_absolute_calibration_error(mean, std, y, num_bins=99) for y, mean, std in predictions.values()]
    texts = [text.get_text() for text in plot_calibration(predictions, axes()).get_legend().get_texts()]
    assert texts == ["ideal", f"bold (MACE {errors[0]:.3f})", f"shy (MACE {errors[1]:.3f})"]


def test_calibration_shades_the_area_between_curve_and_diagonal(predictions):
    ax = plot_calibration(predictions, axes())
    x, height = ax.collections[0].get_paths()[0].vertices.T
    area = 0.5 * abs(np.dot(x, np.roll(height, 1)) - np.dot(height, np.roll(x, 1)))  # shoelace; bold never crosses
    y, mean, std = predictions["bold"]
    assert area == pytest.approx(uct.miscalibration_area(mean, std, y, num_bins=99), abs=1e-3)


def test_calibration_of_more_models_than_safe_colours_repeats_none(predictions):
    many = {f"model {k}": predictions["bold"] for k in range(12)}
    colours = [line.get_color() for line in plot_calibration(many, axes()).get_lines()]
    assert len(set(colours)) == 13


@pytest.mark.parametrize("wrong", [{}, (LENGTHS, LENGTHS, LENGTHS), {"classes": (LENGTHS, LENGTHS)}])
def test_calibration_without_named_models_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="must map the name"):
        plot_calibration(wrong, axes())


def test_bins_of_few_samples_have_long_bars():
    """Wilson's interval, as SciPy has it."""
    low, high = wilson_interval(np.array([0.5, 1.0, 0.75]), np.array([2.0, 3.0, 400.0]))
    for right, n, found in zip((1, 3, 300), (2, 3, 400), zip(low, high, strict=True), strict=True):
        interval = binomtest(right, n).proportion_ci(0.95, "wilson")
        np.testing.assert_allclose(found, (interval.low, interval.high), atol=1e-4)
    ax = Figure().subplots()
    bins = {"a": (np.array([0.3, 0.8]), np.array([0.5, 0.75]), np.array([0.005, 0.995]))}
    draw_reliability(ax, bins | {"b": bins["a"]}, [{"color": "red"}, {"color": "blue"}], 402)
    assert [len(line.get_xdata()) for line in ax.get_lines()[1:]] == [2, 1]  # two samples of another model are no dot
    bars = ax.collections[0].get_segments()
    assert np.ptp(bars[0][:, 1]) > 5 * np.ptp(bars[1][:, 1])

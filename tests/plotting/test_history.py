"""The course of a fit."""

from __future__ import annotations

import numpy as np
import pytest
from plotting.iris_plots import axes
from sklearn.linear_model import LinearRegression

from distreduce.exceptions import InvalidTypeError
from distreduce.plotting import plot_history


def test_history_draws_the_change_of_the_objective(classes):
    line = plot_history(classes, axes()).get_lines()[0]
    values = classes.history_["objective"].to_numpy()
    np.testing.assert_allclose(line.get_ydata(), values - values[0])


def test_history_draws_the_cka_on_axes_of_its_own(classes):
    right = plot_history(classes, axes()).figure.axes[-1]
    np.testing.assert_allclose(right.get_lines()[0].get_ydata(), classes.history_["cka"])


def test_history_of_distr_has_no_cka(unsupervised):
    assert len(plot_history(unsupervised, axes()).figure.axes) == 1


def test_another_model_is_refused():
    with pytest.raises(InvalidTypeError, match="LinearRegression"):
        plot_history(LinearRegression())

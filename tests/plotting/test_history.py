"""The course of a fit. The choice of the number of prototypes."""

from __future__ import annotations

import numpy as np
import pytest
from plotting.iris_plots import axes
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression

from distreduce import SDR
from distreduce.exceptions import InvalidInputError, InvalidTypeError
from distreduce.plotting import plot_choice, plot_history


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


def test_the_chosen_number_is_marked():
    model = SDR(n_prototypes="auto", random_state=0).fit(*load_iris(return_X_y=True))
    ax = plot_choice(model, ax=axes())
    chosen = model.prototype_choice_.query("chosen").iloc[0]
    np.testing.assert_allclose(ax.get_lines()[-1].get_xydata(), [[chosen["n_prototypes"], chosen["error"]]])


def test_a_number_given_by_hand_has_no_choice(classes):
    with pytest.raises(InvalidInputError, match="n_prototypes='auto'"):
        plot_choice(classes)

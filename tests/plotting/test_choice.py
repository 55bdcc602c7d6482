"""The choice of the number of prototypes."""

from __future__ import annotations

import numpy as np
import pytest
from plotting.iris_plots import axes
from sklearn.datasets import load_iris

from distreduce import SDR
from distreduce.exceptions import InvalidInputError
from distreduce.plotting import plot_choice


def test_the_chosen_number_is_marked():
    model = SDR(n_prototypes="auto", random_state=0).fit(*load_iris(return_X_y=True))
    ax = plot_choice(model, ax=axes())
    chosen = model.prototype_choice_.query("chosen").iloc[0]
    np.testing.assert_allclose(ax.get_lines()[-1].get_xydata(), [[chosen["n_prototypes"], chosen["error"]]])


def test_a_number_given_by_hand_has_no_choice(classes):
    with pytest.raises(InvalidInputError, match="n_prototypes='auto'"):
        plot_choice(classes)

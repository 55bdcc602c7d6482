"""Warnings point at the user's line, however deep in the package they arise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from distreduce import SDR
from distreduce._utils.text import warn_user
from distreduce.exceptions import DataWarning

X = np.repeat(np.random.default_rng(0).normal(size=(12, 3)), 2, axis=0)


def test_a_call_from_outside_is_its_own_line():
    with pytest.warns(DataWarning, match="odd") as caught:
        warn_user("odd", DataWarning)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("model", [SDR(n_prototypes=20), make_pipeline(StandardScaler(), SDR(n_prototypes=20))])
def test_frames_of_the_package_and_of_scikit_learn_are_skipped(model):
    with pytest.warns(DataWarning, match="only 12 samples are distinct") as caught:
        model.fit(X, X[:, 0])
    assert [one.filename for one in caught if one.category is DataWarning] == [__file__]

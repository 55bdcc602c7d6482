"""ConstantSpread: its deviation is that of errors on left-out samples."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold

from distreduce.baselines import ConstantSpread


@pytest.mark.parametrize("targets", [1, 2])
def test_deviation_is_that_of_left_out_errors(rng: np.random.Generator, targets: int) -> None:
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, targets)).squeeze()
    missed = np.empty_like(Y)
    for train, test in KFold(4, shuffle=True, random_state=0).split(X):
        missed[test] = Y[test] - Ridge().fit(X[train], Y[train]).predict(X[test])
    mean, std = ConstantSpread(Ridge(), cv=4).fit(X, Y).predict(X[:5], return_std=True)
    assert_allclose(mean, Ridge().fit(X, Y).predict(X[:5]))
    assert_allclose(std, np.broadcast_to(np.sqrt(np.mean(missed**2, axis=0)), mean.shape))


def test_squares_of_large_targets_do_not_overflow(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 2))
    y = 1e300 * (X[:, 0] + 0.1 * rng.normal(size=40))
    mean, std = ConstantSpread(LinearRegression()).fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all() and 1e298 < std[0] < 1e300

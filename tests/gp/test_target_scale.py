"""Targets standardised and back."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from distreduce.gp._target_scale import TargetScale, feature_spread, spread


def test_standardised_targets_are_scikit_learns(rng):
    y = rng.normal(3.0, 5.0, size=(20, 2))
    np.testing.assert_allclose(TargetScale.of(y).standardise(y), StandardScaler().fit_transform(y), rtol=1e-12)


@pytest.mark.parametrize("shape", [(20,), (20, 1), (20, 3)])
def test_units_and_shape_come_back(rng, shape):
    y = rng.normal(3.0, 5.0, size=shape)
    scale = TargetScale.of(y)
    mean, _ = scale.in_units(scale.standardise(y), np.ones(shape))
    np.testing.assert_allclose(mean, y, rtol=1e-12)


def test_standard_deviations_get_the_unit_but_not_the_offset(rng):
    y = rng.normal(100.0, 5.0, size=20)
    _, std = TargetScale.of(y).in_units(np.zeros(20), np.full(20, 0.5))
    np.testing.assert_allclose(std, 0.5 * y.std(), rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e200])
def test_constant_columns_keep_their_unit(value):
    assert spread(np.full((7, 1), value)) == [1.0]


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_spread_is_the_standard_deviation_in_any_unit(rng, unit):
    table = rng.normal(size=(30, 3))
    np.testing.assert_allclose(spread(table * unit), table.std(axis=0) * unit, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, -0.5, 3.0, -1e200])
def test_constant_features_are_measured_by_their_size_if_that_is_large(rng, value):
    table = np.c_[np.full(7, value), rng.normal(size=7)]
    np.testing.assert_allclose(feature_spread(table), [max(1.0, abs(value)), table[:, 1].std()], rtol=1e-12)

"""Warps of the targets: functions with an inverse, taken where left-out samples gain by them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.stats import kstest

from distreduce.gp._sdr_regressor import choose_warp
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import Warp, propose_warps

SKEWED = np.exp(1.2 * np.random.default_rng(0).normal(size=300))
SKEWED = (SKEWED - SKEWED.mean()) / SKEWED.std()
WARPS = propose_warps(SKEWED)
at_each = pytest.mark.parametrize("warp", WARPS, ids=["power", "normal scores"])


def test_a_power_and_normal_scores_are_proposed():
    assert len(WARPS) == 2


@at_each
def test_a_warp_makes_skewed_targets_nearly_gaussian(warp):
    warped = warp(SKEWED)
    np.testing.assert_allclose([warped.mean(), warped.std()], [0.0, 1.0], atol=1e-9)
    assert kstest(warped, "norm").statistic < 0.5 * kstest(SKEWED, "norm").statistic


@at_each
def test_a_warp_increases_and_has_an_inverse(warp):
    low, high = warp.knots[[0, -1], 0]
    y = np.linspace(low - 0.4 * (high - low), high + 0.4 * (high - low), 2001)  # beyond the targets as well
    assert (np.diff(warp(y)) > 0).all()
    np.testing.assert_allclose(warp.back(warp(y)), y, atol=1e-9)


@pytest.mark.parametrize("kind", [0, 1], ids=["power", "normal scores"])
@pytest.mark.parametrize("mean", [-3.0, 0.0, 3.0])
def test_density_and_quantiles_are_of_one_distribution(kind, mean):
    """Also beyond the targets, where quantiles once ended at a cap and the density went on."""
    y = SKEWED[:40]
    stack = Stack({}, {}, warp=propose_warps((y - y.mean()) / y.std())[kind])
    levels = np.array([0.05, 0.5, 0.9, 0.99])
    ends = stack.quantiles(np.array([mean]), np.ones(1), np.r_[1e-9, levels])[0]
    for level, end in zip(levels, ends[1:], strict=True):
        at = np.linspace(ends[0], end, 400_001)
        density = np.exp(stack.log_density(np.full(len(at), mean), np.ones(len(at)), at))
        assert trapezoid(density, at) == pytest.approx(level, abs=1e-3)


def test_one_target_far_from_the_others_does_not_give_the_slope_beyond_them():
    y = np.r_[np.exp(np.random.default_rng(2).normal(size=39)), 60.0]
    y = (y - y.mean()) / y.std()
    fourth, last = np.sort(y)[[-4, -1]]
    for warp in propose_warps(y):  # by the gap of the last two it would be 2.6 and 1.5 times as far
        assert warp.back(warp(y[-1:]) + 1.0)[0] - last < 1.1 * (last - fourth)


@at_each
def test_slope_is_that_of_finite_differences(warp):
    y = np.r_[0.5 * (warp.knots[1:, 0] + warp.knots[:-1, 0]), warp.knots[-1, 0] + 1.0, warp.knots[0, 0] - 1.0]
    step = 1e-7
    np.testing.assert_allclose(warp.log_slope(y), np.log((warp(y + step) - warp(y - step)) / (2 * step)), atol=1e-4)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40))
def test_whatever_is_proposed_has_an_inverse(targets):
    y = np.array(targets)
    y = (y - y.mean()) / (y.std() or 1.0)
    for warp in propose_warps(y):
        assert (np.diff(warp.knots, axis=0) > 0).all()
        np.testing.assert_allclose(warp.back(warp(y)), y, atol=1e-6)


@pytest.mark.parametrize("y", [np.random.default_rng(0).normal(size=300), np.repeat([-1.0, 0.0, 9.0], [60, 30, 10])])
def test_nothing_is_proposed_for_gaussian_targets_or_a_few_values(y):
    assert propose_warps((y - y.mean()) / y.std()) == []


@pytest.fixture
def linear(rng):
    X = rng.normal(size=(150, 3))
    return X, X @ [1.0, -0.5, 0.2] + 0.3 * rng.normal(size=150)


def standardised(y):
    return (y - y.mean()) / y.std()


def test_a_warp_is_taken_for_log_normal_targets(linear):
    X, u = linear
    warp = choose_warp(X, standardised(np.exp(1.5 * u)), np.ones(150))
    assert isinstance(warp, Warp)
    assert np.corrcoef(warp(standardised(np.exp(1.5 * u))), u)[0, 1] > 0.98


def test_no_warp_is_taken_for_gaussian_targets_nor_for_skewed_features(linear):
    """A skewed target that depends on a skewed feature linearly is lost by a warp."""
    X, u = linear
    assert choose_warp(X, standardised(u), np.ones(150)) is None
    skewed = np.exp(1.5 * X)
    assert choose_warp(skewed, standardised(skewed[:, 0] + 0.1 * u), np.ones(150)) is None


def test_few_samples_choose_no_warp(linear):
    X, u = linear
    assert choose_warp(X[:29], standardised(np.exp(2 * u[:29])), np.ones(29)) is None

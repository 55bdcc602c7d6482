"""Intervals of held-out scores: against plain loops and SciPy, and how often they cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from scipy.stats import t as student
from sklearn.metrics import r2_score

from distreduce.metrics.held_out import accuracy_interval, gain_interval, r2_interval


@pytest.mark.parametrize("shape", [(60,), (60, 2)])
def test_the_interval_of_r2_is_the_jackknife_over_groups(rng, shape):
    y, h, groups = rng.normal(size=shape), rng.integers(1, 4, 60), np.repeat(np.arange(12), 5)
    mean = y + 0.6 * rng.normal(size=shape)
    found = [r2_score(y[o], mean[o], sample_weight=h[o]) for o in (groups != g for g in range(12))]
    error, missed = np.sqrt(11 / 12 * np.sum((found - np.mean(found)) ** 2)), 1 - r2_score(y, mean, sample_weight=h)
    expected = 1 - missed * np.exp(student(11).ppf(0.975) * error / missed * np.array([1, -1]))
    assert r2_interval(y, mean, h, groups) == pytest.approx(tuple(expected))
    assert r2_interval(1e200 * y, 1e200 * mean, h, groups) == pytest.approx(tuple(expected))


def test_the_interval_of_an_accuracy_is_wilsons(rng):
    right = rng.random(5000) < 0.9
    expected = binomtest(int(right.sum()), 5000).proportion_ci(method="wilson")
    assert accuracy_interval(right) == pytest.approx((expected.low, expected.high), abs=2e-5)
    assert accuracy_interval(np.repeat(right, 3), groups=np.repeat(np.arange(5000), 3)) == pytest.approx(
        accuracy_interval(right), abs=1e-6
    )


@pytest.mark.parametrize("effect", [0.0, 0.7])
def test_intervals_cover_scores_of_new_groups(rng, effect):
    """Ten groups of eight rows; counted as 80 rows, the intervals of the second case cover 0.75."""
    groups, hits = np.repeat(np.arange(10), 8), []
    for _ in range(400):
        x, own = rng.normal(size=80), effect * rng.normal(size=10)[groups]
        y = x + own + 0.7 * rng.normal(size=80)
        best = 1 / (1 + effect**2 + 0.49)  # the share of the variance that x explains
        both = r2_interval(y, x, None, groups), gain_interval((y - x) ** 2, y**2, None, groups)
        right = rng.random(80) < (0.8 if effect == 0 else rng.beta(3.2, 0.8, 10)[groups])
        hits.append([low <= best <= high for low, high in both])
        hits[-1].append(np.prod(np.subtract(accuracy_interval(right, None, groups), 0.8)) <= 0)
    assert (np.abs(np.mean(hits, axis=0) - 0.95) < 0.05).all()


def test_a_row_of_weight_zero_is_none(rng):
    y, h = rng.normal(size=20), np.repeat([1.0, 0.0], 10)
    assert r2_interval(y, y + 1, h) == pytest.approx(r2_interval(y[:10], y[:10] + 1))
    assert accuracy_interval(y > 0, h) == pytest.approx(accuracy_interval(y[:10] > 0))
    # A row that both predict exactly is one.
    errors = rng.random(20)
    assert gain_interval(np.r_[errors, 0], np.r_[2 + errors, 0]) != gain_interval(errors, 2 + errors)


def test_one_row_with_all_the_error_is_not_ignorance(rng):
    """Without it the error vanishes: the jackknife of log(1 − R²) put the lower end below −1."""
    y = rng.normal(size=8)
    low, high = r2_interval(y, y + 1e-4 * np.eye(8)[0])
    assert 1 - 1e-6 < low < high < 1


def test_ends_that_are_not_known_are_far():
    y, one = np.arange(6.0), np.zeros(6)
    assert r2_interval(y, y + 1, None, one) == (-np.inf, 1) and accuracy_interval(y > 1, None, one) == (0, 1)
    assert r2_interval(y, y) == (1, 1) and r2_interval(one, one + 1) == (-np.inf, 1)
    assert accuracy_interval(np.ones(10))[0] == pytest.approx(0.66, abs=0.01)

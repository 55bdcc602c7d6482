"""The distribution of errors: against a general optimiser, against draws, and at its ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from distreduce.gp._tails import Tails

LEVELS = np.array([1e-6, 0.01, 0.25, 0.5, 0.9, 0.999])


@pytest.fixture
def wide_and_narrow(rng):
    """Errors of variance 1, one in five of which is three times as wide as the others."""
    errors = rng.normal(size=4000) * np.where(rng.uniform(size=4000) < 0.2, 3.0, 1.0)
    return errors / np.sqrt(np.mean(errors**2))


def log_likelihood(tails, errors):
    densities = norm.pdf(errors[:, None], scale=np.sqrt([tails.narrow, tails.wide])) @ [1 - tails.share, tails.share]
    return np.log(densities).mean()


def test_no_general_optimiser_finds_likelier_tails(wide_and_narrow):
    def negative(p):
        share, narrow = 1 / (1 + np.exp(-p))
        return -log_likelihood(Tails(share, narrow, (1 - (1 - share) * narrow) / share), wide_and_narrow)

    best = minimize(negative, [-1.0, 0.0], method="Nelder-Mead").fun
    assert log_likelihood(Tails.of(wide_and_narrow), wide_and_narrow) >= -best - 1e-5


def test_quantiles_are_those_of_the_errors(wide_and_narrow):
    levels = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(
        Tails.of(wide_and_narrow).quantiles(levels), np.quantile(wide_and_narrow, levels), atol=0.06
    )


def test_gaussian_errors_have_gaussian_quantiles(rng):
    np.testing.assert_allclose(
        Tails.of(rng.normal(size=5000)).quantiles(LEVELS[1:-1]), norm.ppf(LEVELS[1:-1]), atol=0.05
    )


def test_the_default_is_the_gaussian():
    np.testing.assert_allclose(Tails().quantiles(LEVELS), norm.ppf(LEVELS), rtol=1e-12)


def test_quantiles_invert_the_distribution():
    tails = Tails(0.2, 0.5, 3.0)
    at = tails.quantiles(LEVELS)[:, None]
    np.testing.assert_allclose(norm.cdf(at, scale=np.sqrt([0.5, 3.0])) @ [0.8, 0.2], LEVELS, rtol=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_variance_is_one_whatever_the_errors(errors):
    tails = Tails.of(np.array(errors))
    assert (1 - tails.share) * tails.narrow + tails.share * tails.wide == pytest.approx(1.0)


@pytest.mark.parametrize("errors", [np.zeros(5), np.r_[np.zeros(50), 1e-200], np.r_[np.ones(50) * 1e-3, 1e3]])
def test_quantiles_of_odd_errors_are_numbers_in_order(errors):
    assert (np.diff(Tails.of(errors).quantiles(LEVELS)) > 0).all()

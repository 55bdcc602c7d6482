"""The distribution of errors: against draws, against scikit-learn's mixture, and at its ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, t
from sklearn.mixture import GaussianMixture

from distreduce.gp._tails import FEW, Tails

LEVELS = np.array([1e-6, 0.01, 0.25, 0.5, 0.9, 0.999])
SKEWED = Tails(((0.5, -0.4, 0.3), (0.3, -0.2, 0.6), (0.2, 1.3, 0.904)))
SHAPES = {
    "two widths": lambda rng, n: rng.normal(size=n) * np.where(rng.uniform(size=n) < 0.2, 3.0, 1.0),
    "skewed": lambda rng, n: rng.gamma(2.0, size=n) - 2.0,
    "Gaussian": lambda rng, n: rng.normal(size=n),
}


def fit(errors):
    return Tails.of(errors, np.ones(len(errors)))


@pytest.fixture(params=SHAPES)
def errors(request, rng):
    found = SHAPES[request.param](rng, 4000)
    return (found - found.mean()) / found.std()


def test_quantiles_are_those_of_the_errors(errors):
    levels = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(fit(errors).quantiles(levels), np.quantile(errors, levels), atol=0.13)


def test_scikit_learns_mixture_is_not_likelier(errors):
    theirs = GaussianMixture(3, random_state=0, tol=1e-6, max_iter=500).fit(errors[:, None])
    assert fit(errors).log_density(errors).mean() > theirs.score(errors[:, None]) - 0.01


def test_weights_are_copies(errors):
    few = errors[:300]
    counts = np.random.default_rng(1).integers(0, 4, size=300)
    weighted, copied = Tails.of(few, counts.astype(float)), fit(np.repeat(few, counts))
    np.testing.assert_allclose(weighted.parts, copied.parts, atol=1e-8)
    assert weighted.freedom == copied.freedom


@pytest.mark.parametrize("n", [FEW, 70, 150])
def test_few_errors_do_not_promise_a_shape_that_new_errors_lack(n):
    """Without a prior a part sat on any few errors that lay together: 0.10 nats for 40 errors, 0.06 for 70."""
    rng, lost = np.random.default_rng(0), []
    for _ in range(20):
        errors = rng.normal(size=n)
        unit = np.sqrt(np.mean(errors**2))
        new = rng.normal(size=2000) / unit
        lost.append((norm.logpdf(new) - fit(errors).log_density(new)).mean())
    assert np.mean(lost) < 2.0 / n


def test_skewed_errors_have_skewed_quantiles(rng):
    low, middle, high = fit(rng.gamma(1.0, size=2000) - 1.0).quantiles([0.05, 0.5, 0.95])
    assert high > 1.4 * abs(low) and middle < -0.1


def test_quantiles_and_density_belong_to_the_mixture():
    share, mean, variance = np.array(SKEWED.parts).T
    below = norm.cdf(SKEWED.quantiles(LEVELS)[:, None], mean, np.sqrt(variance)) @ share
    np.testing.assert_allclose(below, LEVELS, rtol=1e-9)
    at = np.linspace(-3, 3, 7)
    expected = np.log(norm.pdf(at[:, None], mean, np.sqrt(variance)) @ share)
    np.testing.assert_allclose(SKEWED.log_density(at), expected, rtol=1e-10)
    assert quad(lambda e: float(np.exp(SKEWED.log_density(np.array(e)))), -20, 20)[0] == pytest.approx(1.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=2 * FEW))
def test_mean_is_zero_and_variance_one_whatever_the_errors(errors):
    share, mean, variance = np.array(fit(np.array(errors)).parts).T
    assert share @ mean == pytest.approx(0.0, abs=1e-9)
    assert share @ (variance + mean**2) == pytest.approx(1.0) and share.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [2, 5, 12, FEW - 1])
def test_few_errors_have_students_quantiles(rng, n):
    """An error of a thirteenth sample in units of the scale that twelve gave is one of Student's t."""
    np.testing.assert_allclose(fit(rng.normal(size=n)).quantiles(LEVELS), t.ppf(LEVELS, n - 1), rtol=1e-9, atol=1e-12)


def test_the_default_is_the_gaussian():
    np.testing.assert_allclose(Tails().quantiles(LEVELS), norm.ppf(LEVELS), rtol=1e-12)


@pytest.mark.parametrize("errors", [np.zeros(50), np.r_[np.zeros(50), 1e-200], np.r_[np.ones(50) * 1e-3, 1e3]])
def test_quantiles_of_odd_errors_are_numbers_in_order(errors):
    assert (np.diff(fit(errors).quantiles(LEVELS)) > 0).all()


def test_an_error_unlike_all_others_costs_tens_of_nats_not_millions(errors):
    tails = fit(errors)
    at = np.array([1e3, -1e3, 1e200])
    np.testing.assert_allclose(tails.log_density(at), -np.log(4001 * np.pi) - 2 * np.log(np.abs(at)), rtol=1e-5)
    total, _ = quad(lambda e: np.exp(tails.log_density(np.array([e])))[0], -np.inf, np.inf, limit=500)
    assert total == pytest.approx(1.0, abs=1e-6)

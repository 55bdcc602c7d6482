"""GPs on the nearest samples against exact GPs."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce.gp import _exact
from distreduce.gp._exact import NEIGHBOURS, ExactGP, NeighbourGP
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.kernels import Matern32
from distreduce.mapping.relevance import GAUSSIAN

FOUND = Hyperparameters(np.array([0.7, 1.5]), 1.3, 0.05)


def problem(rng, n):
    X = rng.normal(size=(n, 2))
    targets = np.c_[np.sin(2 * X[:, 0]), np.cos(X[:, 1])] + 0.2 * rng.normal(size=(n, 2))
    return X, targets, rng.uniform(0.5, 3.0, size=n), rng.normal(size=(40, 2))


@pytest.mark.parametrize("kernel", [GAUSSIAN, Matern32()], ids=["smooth", "rough"])
def test_with_all_samples_as_neighbours_it_is_the_exact_gp(rng, kernel):
    X, targets, weights, new = problem(rng, NEIGHBOURS)
    ours, exact = (make(X, targets, FOUND, kernel, weights).moments(new) for make in (NeighbourGP, ExactGP))
    np.testing.assert_allclose(ours[0], exact[0], atol=1e-5)
    np.testing.assert_allclose(ours[1], exact[1], rtol=1e-5)


def test_the_nearest_samples_say_nearly_all(rng):
    X, targets, weights, new = problem(rng, 600)
    ours, exact = (make(X, targets, FOUND, GAUSSIAN, weights).moments(new) for make in (NeighbourGP, ExactGP))
    assert np.std(ours[0] - exact[0]) < 0.1 * targets.std()
    np.testing.assert_allclose(ours[1], exact[1], rtol=0.1)
    assert (ours[1] > exact[1] - 1e-6).all()  # fewer samples cannot know more


def test_batches_change_no_bit(rng, monkeypatch):
    X, targets, weights, new = problem(rng, 200)
    gp = NeighbourGP(X, targets, FOUND, GAUSSIAN, weights)
    whole = gp.moments(new)
    monkeypatch.setattr(_exact, "BATCH_NUMBERS", 1)  # one row at a time
    for ours, expected in zip(gp.moments(new), whole, strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_an_offset_costs_no_digits(rng):
    X, targets, weights, new = problem(rng, 200)
    X, new = np.round(X * 1024) / 1024, np.round(new * 1024) / 1024  # so that the sums are exact
    unit = Hyperparameters(np.ones(2), 1.3, 0.05)
    here, there = (NeighbourGP(X + o, targets, unit, GAUSSIAN, weights).moments(new + o)[0] for o in (0.0, 2.0**30))
    np.testing.assert_allclose(there, here, rtol=1e-9)


def test_in_many_dimensions_a_part_of_the_samples_is_searched(rng, monkeypatch):
    monkeypatch.setattr(_exact, "SEARCHED", 50)
    X = rng.normal(size=(200, 20))
    gp = NeighbourGP(X, X[:, :1], Hyperparameters(np.ones(20), 1.0, 0.1), GAUSSIAN, np.ones(200))
    assert len(gp.inputs) == len(gp.target) == len(gp.weights) == 50
    assert np.isfinite(gp.moments(X)[0]).all()

"""Noise that depends on x is found by left-out samples, and noise that does not is left alone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from distreduce.gp._crossfit import CrossFit, arrange
from distreduce.gp._experts import Forest, Lesson, Linear
from distreduce.gp._noise import follow_noise
from distreduce.gp._stack import Stack

SPREADS = {
    "constant": (lambda x: np.ones(len(x)), None),
    "grows": (lambda x: np.exp(0.7 * x), Linear),
    "in the middle": (lambda x: np.where(np.abs(x) < 0.7, 1.5, 0.2), Forest),
}


def learn(rng, spread, n=400, groups=None):
    """A stack of one expert that knows the mean and nothing of the noise, and its samples."""
    X = rng.normal(size=(n, 3))
    y = X[:, 1] + spread(X[:, 0]) * rng.normal(size=n)
    arranged = arrange(X, y[:, None], np.ones(n), groups, periods=True)
    X, y = X[arranged.order], y[arranged.order]
    found = CrossFit({"linear": (X[:, 1], np.ones(n))}, np.arange(n))
    make = partial(Stack.of, weights=arranged.evidence, groups=np.zeros(n, dtype=int))
    lesson = Lesson(X, y[:, None], arranged.weights, False)
    return follow_noise(make(found, y), make, found, lesson, arranged), X, y


@pytest.mark.parametrize("name", SPREADS)
def test_left_out_errors_tell_how_noise_depends_on_x(rng, name):
    spread, kind = SPREADS[name]
    stack, *_ = learn(rng, spread)
    assert stack.noise is None if kind is None else isinstance(stack.noise.expert, kind)


def test_intervals_cover_where_noise_is_large_and_where_it_is_small(rng):
    spread, _ = SPREADS["grows"]
    stack, X, y = learn(rng, spread, n=1000)
    mean, variance = stack.mix({"linear": (X[:, 1], np.ones(len(X)))}, stack.noise(X))
    low, high = stack.quantiles(mean, np.sqrt(variance), np.array([0.05, 0.95])).T
    inside = (low <= y) & (y <= high)
    thirds = np.array_split(np.argsort(X[:, 0]), 3)
    covered = [inside[part].mean() for part in thirds]
    assert 0.85 < min(covered) and max(covered) < 0.96, covered  # with constant noise 1.00 and 0.71


def test_targets_without_an_error_have_no_noise_to_learn(rng):
    stack, *_ = learn(rng, lambda x: np.zeros(len(x)))
    assert stack.noise is None


def test_one_left_out_group_cannot_tell_noise_of_others(rng):
    """Of many samples one part is left out, which may be a single group, such as the first tenth of the time."""
    stack, *_ = learn(rng, SPREADS["grows"][0], groups=np.zeros(400, dtype=int))
    assert stack.noise is None

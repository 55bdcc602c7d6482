"""Adam, step by step against torch's, and the memory of the best point."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce._utils.numerics import Adam, BestSoFar

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("learning_rate", [1e-3, 0.1])
def test_steps_are_torchs(rng, learning_rate):
    gradients = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-6, 6, size=4)
    theirs = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([theirs], lr=learning_rate)
    ours, adam = np.zeros(4), Adam(learning_rate)
    for gradient in gradients:
        theirs.grad = torch.tensor(gradient)
        optimizer.step()
        ours = adam.step(ours, gradient)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-10)


def test_the_point_given_is_not_changed():
    at = np.ones(3)
    Adam(0.1).step(at, np.ones(3))
    np.testing.assert_array_equal(at, np.ones(3))


def bowl(x):
    return float(x @ x), 2 * x, "kept"


def test_the_best_point_is_remembered():
    best = BestSoFar(bowl)
    for at in (3.0, 1.0, 2.0):
        assert best(np.array([at])) == (at**2, np.array([2 * at]))
    assert (best.point, best.value, best.kept, best.n_evaluations) == (np.array([1.0]), 1.0, ["kept"], 3)


def nan_gradient(x):
    return 0.0, np.array([np.nan])


def division(x):
    raise ZeroDivisionError


@pytest.mark.parametrize("failure", [nan_gradient, division, lambda x: (np.nan, x), lambda x: (1e25, x)])
def test_a_failure_is_never_the_best_and_lies_uphill(failure):
    best = BestSoFar(lambda x: bowl(x) if x[0] > 0 else failure(x), failed=1e25)
    assert best.uphill(np.array([-1.0])) == (0.0, np.array([0.0]))
    best(np.array([2.0]))
    assert best(np.array([-1.0])) == (np.inf, None)
    assert best.uphill(np.array([-1.0])) == (9.0, np.array([0.0]))
    assert (best.value, best.n_failures) == (4.0, 3)

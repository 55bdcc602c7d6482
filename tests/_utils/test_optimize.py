"""Adam, step by step against torch's."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce._utils.optimize import Adam

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

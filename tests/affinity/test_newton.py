"""Newton's steps on the dual, one by one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from distreduce.affinity import newton as _newton


class SeenError(Exception):
    """Carries the γ that a search tries first."""


def refuse(gamma, mu):
    raise SeenError(gamma)


@pytest.mark.parametrize("bounded", [True, False])
def test_a_step_to_the_floor_ends_on_it_whatever_is_rounded(rng, bounded):
    """γ exp(log1p(dγ/γ)) is the floor but for a last digit; above it by that much, a row would count as free."""
    gamma = rng.uniform(1.0, 10.0, 10_000)
    floor = gamma * rng.uniform(0.1, 0.9, len(gamma))
    ones, zeros = np.ones(len(gamma)), np.zeros(len(gamma))
    dual = SimpleNamespace(weights=ones, evaluate=refuse)
    point = SimpleNamespace(gamma=gamma, mu=zeros, mass=ones, curvature=np.array([ones, ones]))
    with pytest.raises(SeenError) as tried:
        _newton.search(dual, point, np.array([zeros, floor - gamma]), floor, ones, np.inf, bounded=bounded)
    assert np.array_equal(tried.value.args[0], floor)

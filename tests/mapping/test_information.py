"""Two symmetric sums in the memory of one, against the sums themselves."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce.kernels import RBF
from distreduce.mapping._information import PANEL, information
from distreduce.mapping.landmarks import LandmarkKernel

RATIO = 7.0


def whole_sums(features, weights, similarity, axes):
    """Σ v φφᵀ and Σ h φφᵀ as written, and v/h."""
    phi = similarity(features) @ axes
    shares = 1.0 / (1.0 + RATIO * weights * np.maximum(1.0 - (phi**2).sum(axis=1), 0.0))
    return phi.T @ ((weights * shares)[:, None] * phi), phi.T @ (weights[:, None] * phi), shares


@pytest.mark.parametrize("q", [1, PANEL - 1, PANEL, 2 * PANEL + 3])
@pytest.mark.parametrize("name", ["shared", "plain"])
def test_sums_over_two_shards_are_those_of_all_rows(name, q):
    rng = np.random.default_rng(q)
    features, weights = rng.normal(size=(700, 3)), rng.uniform(0.5, 2.0, 700)
    similarity, axes = LandmarkKernel(RBF(), rng.normal(size=(40, 3))), 0.1 * rng.normal(size=(40, q))
    shared, plain, shares = whole_sums(features, weights, similarity, axes)
    found = information(features[:300], weights[:300], similarity, axes, RATIO)
    found += information(features[300:], weights[300:], similarity, axes, RATIO)
    np.testing.assert_allclose(np.concatenate(found.shares), shares, rtol=1e-12)
    np.testing.assert_allclose(getattr(found, name), {"shared": shared, "plain": plain}[name], rtol=1e-9, atol=1e-10)

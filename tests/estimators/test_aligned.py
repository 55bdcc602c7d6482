"""Two fits in one plane, and what is left when orientation, origin and scale are taken away."""

from __future__ import annotations

import numpy as np
import pytest

from distreduce import DistR, align_embedding
from distreduce.exceptions import InvalidInputError
from distreduce.metrics import drift


class Places:
    """A "model" whose places are given."""

    def __init__(self, places):
        self.places = places

    def transform(self, X):
        return self.places


def test_a_turned_shifted_and_scaled_picture_has_not_drifted(rng):
    Z = rng.normal(size=(30, 2))
    turned = 3.0 * Z @ np.array([[0.6, 0.8], [0.8, -0.6]]) + [5.0, -2.0]  # with a reflection

    assert align_embedding(Places(turned), Places(Z), None) == pytest.approx(Z)
    assert drift(Places(Z), Places(turned), None) == pytest.approx(0.0, abs=1e-7)


def test_drift_is_between_zero_and_one_and_grows_with_what_moves(rng):
    Z, noise = rng.normal(size=(500, 2)), rng.normal(size=(500, 2))
    drifts = [drift(Places(Z), Places(Z + size * noise), None) for size in (0.1, 0.5, 2.0, 100.0)]

    assert drifts[0] == pytest.approx(0.1, rel=0.1)
    assert drifts == sorted(drifts)
    assert 0.95 < drifts[-1] <= 1.0


def test_fits_to_the_same_samples_in_another_orientation(classification):
    X, _ = classification
    model, again = (DistR(perplexity=15.0, random_state=seed).fit(X) for seed in (0, 1))
    assert drift(model, again, X) < 0.05


def test_planes_of_different_dimension_cannot_be_compared(rng):
    with pytest.raises(InvalidInputError, match="embeds in 3 dimensions and onto in 2"):
        align_embedding(Places(rng.normal(size=(5, 3))), Places(rng.normal(size=(5, 2))), None)

"""The Matérn kernel of order 3/2, the correlation of rough functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distreduce._utils.numerics import sq_distances
from distreduce._utils.typing import Array

FAR = 1e3  # the correlation is zero from here on; at infinity, the product would be NaN


@dataclass(frozen=True)
class Matern32:
    r"""Matérn kernel of order 3/2, whose functions are differentiable once but not twice.

    .. math:: k = (1 + \sqrt{3 d^2})\exp(-\sqrt{3 d^2})

    Inputs must be divided by their length scales.

    Examples
    --------
    >>> Matern32()([[0.0], [1.0]]).round(4).tolist()
    [[1.0, 0.4834], [0.4834, 1.0]]
    """

    def __call__(self, A: Any, B: Any = None) -> Array:
        """Kernel matrix between the rows of A and of B."""
        return self.of_sq_distance(sq_distances(A, B))

    def of_sq_distance(self, sq_distance: Array) -> Array:
        """Values k for given d²."""
        return self.with_derivative(sq_distance)[0]

    def derivative(self, sq_distance: Array) -> Array:
        """Values dk/d(d²) = −3/2 exp(−√(3 d²)) for given d²."""
        return self.with_derivative(sq_distance)[1]

    def with_derivative(self, sq_distance: Array) -> tuple[Array, Array]:
        """Values and derivatives, for little more than the cost of one of them."""
        # Training evaluates all n² pairs at every step: after this copy, all work is done in place.
        distance = 3.0 * np.asarray(sq_distance, dtype=np.float64)
        np.sqrt(distance, out=distance)
        # (1 + √3 d) exp(−√3 d) and its derivative share the exponential.
        np.minimum(distance, FAR, out=distance)
        decay = np.negative(distance)
        np.exp(decay, out=decay)
        distance += 1.0
        distance *= decay
        decay *= -1.5
        return distance, decay

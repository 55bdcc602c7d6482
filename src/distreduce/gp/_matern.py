"""The correlation of rough functions, beside the RBF's infinitely smooth ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distreduce._utils.typing import Array
from distreduce.kernels import sq_distances

FAR = 1e3  # from here on the correlation is zero; further away, infinity times zero would be no number


@dataclass(frozen=True)
class Matern32:
    r"""Matérn's kernel of order 3/2, whose functions have one derivative and no second:

    .. math:: k = (1 + \sqrt{3 d^2})\exp(-\sqrt{3 d^2})

    Inputs come divided by their length scales.

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
        """Both, for little more than one of them."""
        distance = 3.0 * np.asarray(sq_distance, dtype=np.float64)
        np.sqrt(distance, out=distance)
        np.minimum(distance, FAR, out=distance)
        decay = np.negative(distance)
        np.exp(decay, out=decay)
        distance += 1.0
        distance *= decay
        decay *= -1.5
        return distance, decay

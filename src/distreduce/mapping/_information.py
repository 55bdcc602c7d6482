"""Weighted sums Σ_i v_i φ_i φ_iᵀ of features φ over shards of rows: two of them in the memory of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from distreduce._utils.typing import Array
from distreduce.kernels import diagonal

# Columns that are multiplied at once: wide enough for BLAS, narrow enough for little to be computed twice.
PANEL = 256


@dataclass
class Information:
    """Σ_i v_i φ_i φ_iᵀ and Σ_i h_i φ_i φ_iᵀ (q, q) of some shards, and v_i/h_i of their samples.

    Both sums are symmetric. `packed` (q + PANEL, q) has the first in its panels on and above the diagonal, and the
    second, transposed and a panel further down, in those below.
    """

    packed: Array
    shares: list[Array]

    def __iadd__(self, other: Information) -> Information:
        self.packed += other.packed
        self.shares += other.shares
        return self

    @property
    def shared(self) -> Array:
        """Σ_i v_i φ_i φ_iᵀ, a copy."""
        return _symmetric(self._halves[0])

    @property
    def plain(self) -> Array:
        """Σ_i h_i φ_i φ_iᵀ, a copy."""
        return _symmetric(self._halves[1])

    @property
    def _halves(self) -> tuple[Array, Array]:
        """Views whose upper triangles are the two sums."""
        return self.packed[:-PANEL], self.packed[PANEL:].T


def information(features: Any, weights: Array, similarity: Any, axes: Array, ratio: float) -> Information:
    """What a shard knows; φ(x) = K(x, X_r) A, `ratio` is μ/λ, `similarity` a :class:`LandmarkKernel`."""
    q = axes.shape[1]
    found = Information(np.zeros((q + PANEL, q)), [np.empty(len(weights))])
    (shares,), (shared, plain) = found.shares, found._halves
    for rows, K in similarity.blocks(features):
        phi = K @ axes
        unexplained = np.maximum(diagonal(similarity.kernel, features[rows]) - np.einsum("ij,ij->i", phi, phi), 0.0)
        shares[rows] = 1.0 / (1.0 + ratio * weights[rows] * unexplained)
        phi *= np.sqrt(weights[rows])[:, None]
        _add_gram(plain, phi)
        phi *= np.sqrt(shares[rows])[:, None]
        _add_gram(shared, phi)
    return found


def _add_gram(half: Array, phi: Array) -> None:
    """Add φᵀφ to the panels on and above the diagonal."""
    for start in range(0, len(half), PANEL):
        stop = min(len(half), start + PANEL)
        half[:stop, start:stop] += phi[:, :stop].T @ phi[:, start:stop]


def _symmetric(half: Array) -> Array:
    """The whole of a matrix whose upper triangle is given."""
    upper = np.triu(half)
    upper += np.triu(half, 1).T
    return upper

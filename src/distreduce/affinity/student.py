"""Normalised Student-t affinity C̄ of the embedding."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from distreduce._utils.threads import ELEMENTWISE, SERIAL, Workers, chunk_count
from distreduce._utils.typing import Array
from distreduce.affinity.symmetric import as_weights
from distreduce.exceptions import InvalidInputError


def student_affinity(embedding: ArrayLike, weights: ArrayLike | None = None, *, workers: Workers = SERIAL) -> Array:
    r"""Normalised Student-t affinity of weighted points.

    C̄_kl = ω_kl / Σ_kl r_k r_l ω_kl with ω_kl = 1 / (1 + |z_k − z_l|²), the diagonal (ω_kk = 1) included. The reference
    weights r (m,) are ones by default, and Σ_kl r_k r_l C̄_kl = 1.

    Examples
    --------
    >>> student_affinity([[0.0], [1.0]])
    array([[0.33333333, 0.16666667],
           [0.16666667, 0.33333333]])
    """
    points = np.ascontiguousarray(embedding, dtype=np.float64)
    if points.ndim != 2 or len(points) == 0:
        raise InvalidInputError(f"embedding must have shape (m, p) with m ≥ 1, got {points.shape}.")
    # A prototype without samples has weight zero and keeps its place.
    r = as_weights(weights, len(points), allow_zero=True)
    kernel = np.empty((len(points), len(points)))
    parts = workers.run(_student_rows, chunk_count(len(points)), points, r, kernel)
    kernel /= sum(parts)  # in the order of the chunks: threads do not change the bits
    return kernel


@njit(**ELEMENTWISE)
def _student_rows(chunk: int, n_chunks: int, points: Array, weights: Array, out: Array) -> float:
    """Write ω_kl for the rows k of chunk::n_chunks; returns their share of Σ_kl r_k r_l ω_kl."""
    m, p = points.shape
    total = 0.0
    for k in range(chunk, m, n_chunks):
        # All j, although ω is symmetric: every chunk then writes only to its own rows.
        for j in range(m):
            squared = 0.0
            for c in range(p):
                difference = points[k, c] - points[j, c]
                squared += difference * difference
            out[k, j] = 1.0 / (1.0 + squared)
            total += weights[k] * weights[j] * out[k, j]
    return total

"""Normalised Student-t affinity C̄ of the embedding."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from distreduce._utils.typing import Array
from distreduce.affinity.symmetric import as_weights


def student_affinity(embedding: ArrayLike, weights: ArrayLike | None = None) -> Array:
    r"""Normalised Student-t affinity of weighted points.

    C̄_kl = ω_kl / Σ_kl r_k r_l ω_kl with ω_kl = 1 / (1 + |z_k − z_l|²), the diagonal (ω_kk = 1) included. The reference
    weights r (m,) are ones by default, and Σ_kl r_k r_l C̄_kl = 1.
    """
    points = np.ascontiguousarray(embedding, dtype=np.float64)
    r = as_weights(weights, len(points))  # a prototype without samples has weight zero and keeps its place
    kernel = cdist(points, points, "sqeuclidean")
    kernel += 1.0
    np.reciprocal(kernel, out=kernel)
    # Not by BLAS, whose threads may change the last bits.
    kernel /= (np.einsum("kl,l->k", kernel, r) * r).sum()
    return kernel

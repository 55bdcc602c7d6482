"""Validation of distances, weights and perplexity, shared by all affinities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError


def as_distances(sq_distances: ArrayLike) -> Array:
    """The square matrix D as C-contiguous float32 or float64, without a copy if it already is."""
    distances = np.asarray(sq_distances)
    if distances.dtype not in (np.float32, np.float64):
        distances = distances.astype(np.float64)
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or distances.shape[0] == 0:
        raise InvalidInputError(f"sq_distances must be a square matrix, got an array of shape {distances.shape}.")
    low, high = distances.min(), distances.max()  # NaN reaches both extremes, and fails both comparisons
    if not (low >= 0.0 and high < np.inf):
        raise InvalidInputError(
            f"sq_distances must be finite and non-negative, got values from {low} to {high}; "
            "squared distances overflow when the data are too large: rescale them."
        )
    return np.ascontiguousarray(distances)


def as_weights(weights: ArrayLike | None, n: int, *, allow_zero: bool = False) -> Array:
    """The positive (or, if allowed, non-negative) weights of n samples; ones by default."""
    if weights is None:
        return np.ones(n)
    array = np.ascontiguousarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise InvalidInputError(f"weights must have shape ({n},), one per sample, got {array.shape}.")
    if not (np.all(np.isfinite(array)) and np.all(array >= 0.0) and array.sum() > 0.0):
        raise InvalidInputError("weights must be finite and non-negative, and not all zero.")
    # A row of weight zero has no curvature in the dual: Newton's method would divide by it.
    if not allow_zero and np.any(array == 0.0):
        raise InvalidInputError("weights must be positive; drop the samples of weight zero.")
    return array


def check_perplexity(perplexity: float, weights: Array) -> None:
    """Raise unless the perplexity lies between 1 (a sample is its own neighbour) and the total weight."""
    total = float(weights.sum())
    if not 1.0 <= perplexity <= total:
        raise InvalidInputError(f"perplexity must be between 1 and the total weight {total:g}, got {perplexity}.")

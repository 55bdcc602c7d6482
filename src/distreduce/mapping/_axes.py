"""Coordinates in which a kernel matrix is the identity."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpocon, dpotrf, dtrtri

from distreduce._utils.typing import Array
from distreduce.exceptions import NumericalError

# Directions of K below this, relative to the largest, are left out: rounding made them, or repeated landmarks.
SMALLEST_DIRECTION = 1e-12
# From this reciprocal condition number on no direction is near to being left out.
WELL_CONDITIONED = 1e-10


def orthonormal_axes(K: Array) -> Array:
    """A (r, q) with AᵀKA = I for the directions in which K (r, r), positive semidefinite, is not zero."""
    if not np.isfinite(K).all():
        raise NumericalError("The input kernel is not finite; scale X or give a length_scale that fits it.")
    K = 0.5 * (K + K.T)
    axes = _inverse_cholesky(K)
    return _scaled_eigenvectors(K) if axes is None else axes


def _scaled_eigenvectors(K: Array) -> Array:
    values, vectors = eigh(K, check_finite=False)
    kept = values > SMALLEST_DIRECTION * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _inverse_cholesky(K: Array) -> Array | None:
    """A = R⁻¹ of K = RᵀR, in a quarter of the time that eigenvectors take; None where K is nearly singular."""
    factor, failed = dpotrf(K, lower=0, clean=1)
    if failed or dpocon(factor, np.linalg.norm(K, 1))[0] < WELL_CONDITIONED:
        return None
    return np.asarray(dtrtri(factor, lower=0, overwrite_c=1)[0])

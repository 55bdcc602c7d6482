"""Linear algebra that several rooms need and SciPy offers only in parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]


def inverse_from_factor(factor: Array) -> Array:
    """(F Fᵀ)⁻¹ from the lower Cholesky factor F, a third of the work of solving for the identity.

    What stands above the diagonal of `factor` is not read.
    """
    lower = np.tril(lapack.dpotri(factor, lower=1)[0])
    inverse = lower + lower.T
    inverse[np.diag_indices(len(inverse))] *= 0.5
    return np.asarray(inverse)

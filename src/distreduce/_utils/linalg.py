"""Linear algebra on top of SciPy that several rooms share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit
from scipy.linalg import LinAlgError, cho_factor, lapack

from distreduce._utils.numba import KERNEL
from distreduce._utils.typing import Array


def jittered_cholesky(A: Array, unit: Array | float, jitters: Iterable[float]) -> tuple[Array, float]:
    """Lower Cholesky factor of a symmetric matrix, with as little added to the diagonal as makes it positive definite.

    If the factorisation fails, the `jitters` are tried in their order; a jitter of 1 adds `unit` to the diagonal. Also
    returns the jitter that was needed, usually 0. The factor takes the memory of A, which must be in column order; the
    numbers above its diagonal are those of A.

    Raises
    ------
    FloatingPointError
        The matrix or `unit` holds NaN or infinity.
    LinAlgError
        The matrix is not positive definite even with the largest jitter.
    """
    diagonal = A.diagonal().copy()
    if not (np.isfinite(diagonal).all() and np.isfinite(unit).all()):
        raise FloatingPointError("the matrix holds NaN or infinity")
    for jitter in (0.0, *jitters):
        if jitter:  # a failed attempt overwrites the lower triangle only
            for i in range(len(A)):
                A[i, :i] = A[:i, i]
            A[np.diag_indices(len(A))] = diagonal + jitter * unit
        try:
            factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)[0]
        except LinAlgError:
            continue
        if np.isfinite(factor.diagonal()).all():  # a NaN anywhere reaches a later pivot
            return factor, jitter
        break  # jitter does not remove NaN
    # The upper triangle is still that of the input: it shows which of the two errors this is.
    if np.isfinite(np.triu(A, 1)).all():
        raise LinAlgError("the matrix is not positive definite, even with jitter on its diagonal")
    raise FloatingPointError("the matrix holds NaN or infinity")


def inverse_from_factor(factor: Array) -> Array:
    """(F Fᵀ)⁻¹ from the lower Cholesky factor F, a third of the work of solving for the identity.

    Only the lower triangle of `factor` is read.
    """
    inverse: Array = lapack.dpotri(factor, lower=1)[0].T  # in row order, as the callers expect
    _mirror(inverse)
    return inverse


@njit(**KERNEL)
def _mirror(A: Array) -> None:
    """Copy the upper triangle to the lower one, in blocks that fit into the cache."""
    n = len(A)
    for top in range(0, n, 64):
        for left in range(top, n, 64):
            for i in range(top, min(top + 64, n)):
                for j in range(max(left, i + 1), min(left + 64, n)):
                    A[j, i] = A[i, j]

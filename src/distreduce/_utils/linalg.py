"""Linear algebra that several rooms need and SciPy offers only in parts."""

from __future__ import annotations

from numba import njit
from scipy.linalg import lapack

from distreduce._utils.numba import KERNEL
from distreduce._utils.typing import Array


def inverse_from_factor(factor: Array) -> Array:
    """(F Fᵀ)⁻¹ from the lower Cholesky factor F, a third of the work of solving for the identity.

    What stands above the diagonal of `factor` is not read.
    """
    inverse: Array = lapack.dpotri(factor, lower=1)[0].T  # rows, as everybody else has them
    _mirror(inverse)
    return inverse


@njit(**KERNEL)
def _mirror(A: Array) -> None:
    """Copy what stands above the diagonal to below it, a square that fits into the cache after another."""
    n = len(A)
    for top in range(0, n, 64):
        for left in range(top, n, 64):
            for i in range(top, min(top + 64, n)):
                for j in range(max(left, i + 1), min(left + 64, n)):
                    A[j, i] = A[i, j]

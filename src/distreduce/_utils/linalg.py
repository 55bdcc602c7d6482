"""Linear algebra on top of SciPy that several rooms share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit
from scipy.linalg import LinAlgError, cho_factor, lapack

from distreduce._utils.numba import KERNEL
from distreduce._utils.typing import Array

SMALL_TRIANGLE = 96  # rows below which LAPACK inverts a triangle faster


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
    """(F Fᵀ)⁻¹ from the lower Cholesky factor F, of which only the lower triangle is read."""
    inverse: Array = half_inverse_from_factor(np.tril(factor)).T  # in row order, as the callers expect
    _mirror(inverse)
    return inverse


def half_inverse_from_factor(factor: Array) -> Array:
    """The lower triangle of (F Fᵀ)⁻¹, in column order, from F, whose upper triangle must be zero."""
    inverse = np.empty_like(factor, order="F")
    _invert_triangle(factor, inverse)
    half: Array = lapack.dlauum(inverse, lower=1, overwrite_c=1)[0]
    return half


def _invert_triangle(F: Array, out: Array) -> None:
    r"""Invert a lower triangle by halves: nearly all work is in matrix products, three times as fast as LAPACK's.

    .. math::
        \begin{pmatrix} A & 0 \ C & B \end{pmatrix}^{-1} =
        \begin{pmatrix} A^{-1} & 0 \ -B^{-1} C A^{-1} & B^{-1} \end{pmatrix}
    """
    n = len(F)
    if n <= SMALL_TRIANGLE:
        out[:] = lapack.dtrtri(F, lower=1)[0]
        return
    h = n // 2
    _invert_triangle(F[:h, :h], out[:h, :h])
    _invert_triangle(F[h:, h:], out[h:, h:])
    out[:h, h:] = 0.0
    np.matmul(out[h:, h:], F[h:, :h] @ out[:h, :h], out=out[h:, :h])
    np.negative(out[h:, :h], out=out[h:, :h])


@njit(**KERNEL)
def _mirror(A: Array) -> None:
    """Copy the upper triangle to the lower one, in blocks that fit into the cache."""
    n = len(A)
    for top in range(0, n, 64):
        for left in range(top, n, 64):
            for i in range(top, min(top + 64, n)):
                for j in range(max(left, i + 1), min(left + 64, n)):
                    A[j, i] = A[i, j]

"""Linear algebra: one jittered Cholesky factor, inverses, many ridges at once, and LAPACK without the interpreter lock.

SciPy's wrappers hold the lock. The routines are SciPy's own (``scipy.linalg.cython_lapack``), with the same bits, and
threads factorise side by side. Their matrices are in column order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ctypes import CFUNCTYPE, byref, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from scipy.linalg import LinAlgError, eigh_tridiagonal, lapack

from distreduce._utils.typing import Array

SMALL_TRIANGLE = 96  # rows below which LAPACK inverts a triangle faster


@cache
def _find(name: str, n_arguments: int) -> Any:
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    return CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)  # ctypes releases the lock during such a call


def _call(name: str, *arguments: bytes | int | Array) -> bool:
    """Call a routine, all of whose arguments are pointers, and return whether it succeeded."""
    info, pointers = c_int(0), []
    for own in arguments:
        if isinstance(own, np.ndarray) and (own.dtype != np.float64 or not own.flags.forc):
            raise ValueError("the matrix must be of float64 and contiguous")  # else LAPACK writes anywhere
        pointers.append(
            own.ctypes.data if isinstance(own, np.ndarray) else byref(c_int(own)) if isinstance(own, int) else own
        )
    _find(name, len(pointers) + 1)(*pointers, byref(info))
    return info.value == 0


def factorise_in_place(A: Array) -> bool:
    """Overwrite the lower triangle of A by its Cholesky factor; False if A is not positive definite."""
    return _call("dpotrf", b"L", len(A), A, max(1, len(A)))


def multiply_factor(F: Array) -> Array:
    """The lower triangle of Fᵀ F, in the place of the lower triangle F."""
    _call("dlauum", b"L", len(F), F, max(1, len(F)))
    return F


def solve_lower(F: Array, B: Array) -> Array:
    """F⁻¹ B from a lower triangle F in column or row order."""
    found = np.array(B, order="F", dtype=np.float64)
    kind = (b"L", b"N") if F.flags.f_contiguous else (b"U", b"T")  # rows of F are columns of its transpose
    _call("dtrtrs", *kind, b"N", len(F), B.shape[1], F, max(1, len(F)), found, max(1, len(F)))
    return found


def jittered_cholesky(A: Array, unit: Array | float, jitters: Iterable[float]) -> tuple[Array, float]:
    """Lower Cholesky factor of a symmetric matrix, with as little added to the diagonal as makes it positive definite.

    If the factorisation fails, the `jitters` are tried in their order; a jitter of 1 adds `unit` to the diagonal. Also
    returns the jitter that was needed, usually 0. The factor takes the memory of A, which must be in column order; the
    numbers above its diagonal are those of A. Raises FloatingPointError if the matrix or `unit` holds NaN or infinity,
    and LinAlgError if the matrix is not positive definite even with the largest jitter.
    """
    A = np.asfortranarray(A, dtype=np.float64)
    diagonal = A.diagonal().copy()
    if not (np.isfinite(diagonal).all() and np.isfinite(unit).all()):
        raise FloatingPointError("the matrix holds NaN or infinity")
    for jitter in (0.0, *jitters):
        if jitter:  # a failed attempt overwrites the lower triangle only
            for i in range(len(A)):
                A[i, :i] = A[:i, i]
            A[np.diag_indices(len(A))] = diagonal + jitter * unit
        if not factorise_in_place(A):
            continue
        if np.isfinite(A.diagonal()).all():  # a NaN anywhere reaches a later pivot
            return A, jitter
        break  # jitter does not remove NaN
    # The upper triangle is still that of the input: it shows which of the two errors this is.
    if np.isfinite(np.triu(A, 1)).all():
        raise LinAlgError("the matrix is not positive definite, even with jitter on its diagonal")
    raise FloatingPointError("the matrix holds NaN or infinity")


def inverse_from_factor(factor: Array) -> Array:
    """(F Fᵀ)⁻¹ from the lower Cholesky factor F, of which only the lower triangle is read."""
    inverse: Array = half_inverse_from_factor(np.tril(factor)).T  # in row order, as the callers expect
    mirror(inverse)
    return inverse


def half_inverse_from_factor(factor: Array) -> Array:
    """The lower triangle of (F Fᵀ)⁻¹, in column order, from F, whose upper triangle must be zero."""
    inverse = np.empty_like(factor, order="F")
    _invert_triangle(factor, inverse)
    return multiply_factor(inverse)


def _invert_triangle(F: Array, out: Array) -> None:
    r"""Invert a lower triangle by halves: nearly all work is in matrix products, three times as fast as LAPACK's.

    .. math::
        \begin{pmatrix} A & 0 \\ C & B \end{pmatrix}^{-1} =
        \begin{pmatrix} A^{-1} & 0 \\ -B^{-1} C A^{-1} & B^{-1} \end{pmatrix}
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


def solve_with_ridges(A: Array, left: Array, right: Array, ridges: Sequence[float]) -> list[Array]:
    r"""left (A + λI)⁻¹ right for each λ, from one reduction of the symmetric A = Q T Qᵀ to the tridiagonal T.

    Eigenvectors would take twice as long. They are used where an A + λI is not positive definite: negative eigenvalues
    of A then count as zero.
    """
    n, c = right.shape
    if n == 1:  # LAPACK takes no empty arrays
        return [left * right / (np.maximum(A, 0.0) + ridge) for ridge in ridges]
    reflectors, d, e, tau, _ = lapack.dsytrd(A, lower=1, lwork=32 * n)
    both = np.asfortranarray(np.hstack([right, left.T]))
    # Qᵀ leaves the first row as it is.
    both[1:] = lapack.dormqr("L", "T", reflectors[1:, :-1], tau, both[1:], lwork=32 * both.shape[1])[0]
    right, left = both[:, :c], both[:, c:].T
    found = [lapack.dptsv(d + ridge, e, right) for ridge in ridges]
    if all(info == 0 for *_, info in found):
        return [left @ solution for _, _, solution, _ in found]
    values, vectors = eigh_tridiagonal(d, e)
    left, right = left @ vectors, vectors.T @ right
    return [left @ (right / (np.maximum(values, 0.0) + ridge)[:, None]) for ridge in ridges]


def mirror(A: Array) -> None:
    """Copy the upper triangle to the lower one, in blocks that fit into the cache."""
    for top in range(0, len(A), 64):
        for left in range(top, len(A), 64):
            block = A[top : top + 64, left : left + 64]
            A[left : left + 64, top : top + 64] = block.T if left > top else np.triu(block) + np.triu(block, 1).T

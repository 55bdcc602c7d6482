"""LAPACK and BLAS without the interpreter lock, which SciPy's wrappers hold: threads then factorise side by side.

The routines are SciPy's own (``scipy.linalg.cython_lapack``), so that every bit is the same. Matrices are in column order
(Fortran's), and only the lower triangles of symmetric ones are read and written.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, byref, c_double, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from distreduce._utils.typing import Array


@cache
def _find(name: str, n_arguments: int) -> Any:
    library = "cython_lapack" if name in ("dpotrf", "dpotrs", "dlauum", "dtrtrs") else "cython_blas"
    address = get_cython_function_address(f"scipy.linalg.{library}", name)
    return CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)  # ctypes releases the lock during such a call


def _call(name: str, *arguments: bytes | int | float | Array) -> int:
    """Call a routine, all of whose arguments are pointers, and return what it writes into an `info` at the end."""
    info = c_int(0)
    made: list[Any] = []
    for own in arguments:
        if isinstance(own, np.ndarray):
            if own.dtype != np.float64 or not (own.flags.f_contiguous or own.flags.c_contiguous):
                raise ValueError("the matrix must be of float64 and contiguous")  # else LAPACK writes anywhere
            made.append(own.ctypes.data)
        else:
            made.append(own if isinstance(own, bytes) else byref(c_int(own) if isinstance(own, int) else c_double(own)))
    if name.startswith(("dpo", "dla", "dtrtrs")):
        made.append(byref(info))
    _find(name, len(made))(*made)
    return info.value


def factorise_in_place(A: Array) -> bool:
    """Overwrite the lower triangle of A by its Cholesky factor; False if A is not positive definite."""
    return _call("dpotrf", b"L", len(A), A, max(1, len(A))) == 0


def solve_factorised(factor: Array, B: Array) -> Array:
    """(F Fᵀ)⁻¹ B from the lower Cholesky factor F; B is a vector or a matrix."""
    factor, found = np.asfortranarray(factor), np.array(B, order="F", dtype=np.float64)
    n, columns = len(found), 1 if found.ndim == 1 else found.shape[1]
    _call("dpotrs", b"L", n, columns, factor, max(1, n), found, max(1, n))
    return found


def solve_lower(factor: Array, B: Array) -> Array:
    """F⁻¹ B from a lower triangle F in any order."""
    column_order = factor.flags.f_contiguous
    F, found = (factor if column_order else np.ascontiguousarray(factor)), np.array(B, order="F", dtype=np.float64)
    kind = (b"L", b"N") if column_order else (b"U", b"T")  # rows of F are columns of its transpose
    n = len(found)
    _call("dtrtrs", *kind, b"N", n, found.shape[1], F, max(1, n), found, max(1, n))
    return found


def multiply_factor(F: Array) -> Array:
    """The lower triangle of Fᵀ F, in the place of the lower triangle F."""
    _call("dlauum", b"L", len(F), F, max(1, len(F)))
    return F


def add_outer(alpha: float, A: Array, beta: float, C: Array) -> Array:
    """Β C + α A Aᵀ in the lower triangle of C, for A (n, k) in column or row order."""
    n, k = A.shape
    by_columns = A.flags.f_contiguous
    A = A if by_columns else np.ascontiguousarray(A)
    _call("dsyrk", b"L", b"N" if by_columns else b"T", n, k, alpha, A, n if by_columns else k, beta, C, n)
    return C


def multiply_symmetric(A: Array, B: Array) -> Array:
    """A B for a symmetric A, of which the lower triangle is read."""
    B = np.asfortranarray(B)
    n, k = B.shape
    found = np.empty_like(B)
    _call("dsymm", b"L", b"L", n, k, 1.0, A, n, B, n, 0.0, found, n)
    return found

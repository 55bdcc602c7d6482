"""LAPACK without the interpreter lock, which SciPy's wrappers hold: threads then factorise side by side.

The routines are SciPy's own (``scipy.linalg.cython_lapack``), with the same bits. Matrices are in column order.
"""

from __future__ import annotations

from ctypes import CFUNCTYPE, byref, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address

from distreduce._utils.typing import Array


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

"""Shared by the compiled loops: chunks, compiler flags, and an exponential and a logarithm that vectorise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from distreduce._utils.typing import Array

# Sums may be reordered and multiplications fused with additions, so that loops become SIMD code. Infinities and NaN
# keep their meaning (no "fast" flag): an overflowing distance must still end as an affinity of zero.
# The NumPy error model drops the test for a division by zero, which alone would forbid SIMD code.
KERNEL: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
# Loops that fill a matrix entry by entry: without reordering, entry (i, j) and entry (j, i) get the same bits.
ELEMENTWISE: dict[str, Any] = {**KERNEL, "fastmath": {"contract"}}

# Exponents are clipped to this range: exp(-700) is practically zero, and sums of exp(300) are far from overflow.
MIN_EXPONENT = -700.0
MAX_EXPONENT = 300.0

_LOG2_E = 1.4426950408889634
# log 2 in two parts, the first with trailing zero bits: k * _LN2_HIGH is exact for every exponent k met here.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


def chunk_count(n: int) -> int:
    """Return the number of chunks for n rows. It depends on n alone, so that threads cannot change a result."""
    return min(16, 1 + n // 128)


def lowest_exponent(matrix: Array) -> float:
    """Return the smallest exponent that is not flushed to zero: denormal numbers slow down every later product."""
    return max(MIN_EXPONENT, float(np.log(np.finfo(matrix.dtype).tiny)) + 1.0)


def ordered_sum(parts: list[Array]) -> Array:
    """Sum the partial arrays of the chunks, always in the same order."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@njit(inline="always", error_model="numpy")
def bounded_exp(x: float) -> float:
    """exp(x) for MIN_EXPONENT ≤ x ≤ MAX_EXPONENT, to two units in the last place, without a call or a branch.

    x = k log 2 + r with |r| ≤ log(2)/2; exp(r) is its Taylor polynomial of degree 12 and 2**k is built from its bits.
    The library's exp is an opaque call that keeps LLVM from vectorising the loop around it (5 times slower).
    """
    k = np.floor(x * _LOG2_E + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 479001600.0  # 1/12!, then down to 1/0! by Horner's scheme
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # 2**k: its biased exponent, moved to its place in the bits of a float.
    return p * np.int64((np.int64(k) + 1023) << 52).view(np.float64)


@njit(inline="always", error_model="numpy")
def log_from_one(x: float) -> float:
    """log(x) for finite x ≥ 1, to two units in the last place of max(1, log x), without a call or a branch.

    x = 2**k f with f between √½ and √2; log f = 2 artanh(s), s = (f − 1)/(f + 1), by its series up to s²¹.
    """
    bits = np.float64(x).view(np.int64)
    # Adding the distance from √½ to 1 in the mantissa's bits rounds the exponent so that f lies around one.
    k = ((bits + 0x95F619980C433) >> 52) - 1023
    f = np.int64(bits - (k << 52)).view(np.float64)
    s = (f - 1.0) / (f + 1.0)
    s2 = s * s
    p = 1.0 / 21.0  # Horner's scheme in s²
    p = p * s2 + 1.0 / 19.0
    p = p * s2 + 1.0 / 17.0
    p = p * s2 + 1.0 / 15.0
    p = p * s2 + 1.0 / 13.0
    p = p * s2 + 1.0 / 11.0
    p = p * s2 + 1.0 / 9.0
    p = p * s2 + 1.0 / 7.0
    p = p * s2 + 1.0 / 5.0
    p = p * s2 + 1.0 / 3.0
    p = p * s2 + 1.0
    return k * (_LN2_HIGH + _LN2_LOW) + 2.0 * s * p

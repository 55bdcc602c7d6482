"""Threads and compiled loops: a pool, a limit for BLAS and OpenMP, compiler flags, and functions that vectorise.

Threaded loops are cut into chunks whose number depends on the problem only, never on the number of threads, and the
partial sums of the chunks are added in a fixed order. One thread and eight threads therefore give the same bits.

The chunks run on plain Python threads (the compiled kernels release the interpreter lock) instead of Numba's own
threading layers, which spin between calls, abort after ``fork`` and are not all safe to enter from several threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import numpy as np
from numba import njit
from threadpoolctl import OpenBLASController, ThreadpoolController, threadpool_limits

from distreduce._utils.typing import Array

Part = TypeVar("Part")


class Workers:
    """Run ``kernel(chunk, n_chunks, *args)`` for every chunk and return the parts in the order of the chunks."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads, initializer=_leave_openmp) if n_threads > 1 else None

    def run(self, kernel: Callable[..., Part], n_chunks: int, *args: Any) -> list[Part]:
        compute = map if self._pool is None or n_chunks == 1 else self._pool.map
        return list(compute(lambda chunk: kernel(chunk, n_chunks, *args), range(n_chunks)))

    def stream(self, kernel: Callable[..., Part], n_chunks: int, *args: Any) -> Iterator[Part]:
        """Yield the parts one by one; at most as many are held in memory as there are threads."""
        if self._pool is None or n_chunks == 1:
            yield from (kernel(chunk, n_chunks, *args) for chunk in range(n_chunks))
            return
        ahead: deque[Future[Part]] = deque()
        try:
            for chunk in range(n_chunks):
                ahead.append(self._pool.submit(kernel, chunk, n_chunks, *args))
                if len(ahead) == self.n_threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:  # after an error, or if the caller stops early
                future.cancel()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


SERIAL = Workers(1)


def _leave_openmp() -> None:
    """Limit OpenMP to one thread in this thread, where that of the main thread does not hold.

    Boosted trees in two threads with two OpenMP threads each took 11 s instead of 3 s on two cores.
    """
    threadpool_limits(limits=1, user_api="openmp")


def _release_openblas() -> None:
    """Let this thread set the limit of OpenBLAS: threadpoolctl 3.8 (not 3.6) ignores all but the first that set it."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


class _SharedLimit:
    """A limit of one thread on BLAS and OpenMP while at least one fit is running.

    Counting the fits keeps two of them in two Python threads from restoring each other's limit as the "original" one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: Any = None
        self._libraries: Any = None  # BLAS and OpenMP, as found when there were `_n_modules`
        self._n_modules = 0

    def acquire(self) -> None:
        with self._lock:
            # After a fork there may be a limit without users, which is kept.
            if self._users == 0 and self._limits is None:
                _release_openblas()
                # To find the libraries takes 12 ms, to limit them 0.04 ms; only an import can have loaded another one.
                if self._n_modules != len(sys.modules):
                    self._libraries, self._n_modules = ThreadpoolController(), len(sys.modules)
                self._limits = self._libraries.limit(limits=1)
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._limits is not None:
                _release_openblas()
                self._limits.restore_original_limits()
                _release_openblas()
                self._limits = None

    def forget_users(self) -> None:
        """Reset the count in the child of a fork, where the fits of other threads do not exist.

        The limit that they set still applies, and is lifted after the first fit of the child.
        """
        self._lock = threading.Lock()  # the old one may be held by a thread that does not exist here
        self._users = 0


_LIMIT = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forget_users)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread: the same bits on any machine, and no competition for cores.

    SciPy's L-BFGS calls threaded BLAS on vectors of a few hundred numbers. Next to other threads on two cores, that
    took 50 to 90 s instead of 0.4 s.
    """
    _LIMIT.acquire()
    try:
        yield
    finally:
        _LIMIT.release()


def available_cores() -> int:
    """Return the number of cores that this process may use; it may be bound to some of the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def effective_threads(n_jobs: int | None) -> int:
    """Return the number of threads for scikit-learn's ``n_jobs``: None and −1 are all cores, −2 all but one.

    As in scikit-learn, OMP_NUM_THREADS limits None; joblib sets it in processes that share the cores.
    """
    cores = available_cores()
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


@contextmanager
def workers(n_jobs: int | None = None) -> Iterator[Workers]:
    """Yield a pool for one fit, with BLAS limited to one thread meanwhile."""
    with closing(Workers(effective_threads(n_jobs))) as pool, single_threaded_blas():
        yield pool


# Sums may be reordered and multiplications fused with additions, so that loops become SIMD code. Infinities and NaN
# keep their meaning (no "fast" flag): an overflowing distance must still end as an affinity of zero.
# The NumPy error model drops the test for a division by zero, which alone would forbid SIMD code.
KERNEL: dict[str, Any] = dict(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
# Functions that loops call are inlined: a copy of their own may round differently, and whether a process runs that copy
# depends on whether it has compiled the loop or read it from the cache.
PART: dict[str, Any] = {**KERNEL, "forceinline": True}
# Loops that fill a matrix entry by entry: without reordering, entry (i, j) and entry (j, i) get the same bits.
ELEMENTWISE: dict[str, Any] = {**KERNEL, "fastmath": {"contract"}}

# Exponents are clipped to this range: exp(-700) is practically zero, and sums of exp(300) are far from overflow.
MIN_EXPONENT = -700.0
MAX_EXPONENT = 300.0

_LOG2_E = 1.4426950408889634
# log 2 in two parts, the first with trailing zero bits: k * _LN2_HIGH is exact for every exponent k met here.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


UNCOMPILED_ROWS = 160


def too_few_to_compile(n: int) -> bool:
    """Whether NumPy takes the place of compiled loops over n rows or prototypes.

    It costs a fit of that size less than a tenth of a second. Compiling the loops takes eight, once per installation.
    """
    return n <= UNCOMPILED_ROWS


def chunk_count(n: int) -> int:
    """Return the number of chunks for n rows. It depends on n alone, so that threads cannot change a result."""
    return min(16, 1 + n // 128)


def lowest_exponent(matrix: Array) -> float:
    """Return the smallest exponent that is not flushed to zero: denormal numbers slow down every later product."""
    return max(MIN_EXPONENT, float(np.log(np.finfo(matrix.dtype).tiny)) + 1.0)


def ordered_sum(parts: list[Array]) -> Array:
    """Sum the partial arrays of the chunks, always in the same order."""
    return sum(parts[1:], start=parts[0])


@njit(inline="always", error_model="numpy")
def bounded_exp(x: float) -> float:
    """exp(x) for MIN_EXPONENT ≤ x ≤ MAX_EXPONENT, to two units in the last place, without a call or a branch.

    x = k log 2 + r with |r| ≤ log(2)/2; exp(r) is its Taylor polynomial of degree 12 and 2**k is built from its bits.
    The library's exp is an opaque call that keeps LLVM from vectorising the loop around it (5 times slower).
    """
    k = np.floor(x * _LOG2_E + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 479001600.0  # 1/12!, then down to 1/0! by Horner's scheme
    p = ((p * r + 1.0 / 39916800.0) * r + 1.0 / 3628800.0) * r + 1.0 / 362880.0
    p = ((p * r + 1.0 / 40320.0) * r + 1.0 / 5040.0) * r + 1.0 / 720.0
    p = ((p * r + 1.0 / 120.0) * r + 1.0 / 24.0) * r + 1.0 / 6.0
    p = ((p * r + 0.5) * r + 1.0) * r + 1.0
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
    p = 1.0 / 21.0  # 1/21, 1/19, … 1/1 by Horner's scheme in s²
    p = ((p * s2 + 1.0 / 19.0) * s2 + 1.0 / 17.0) * s2 + 1.0 / 15.0
    p = ((p * s2 + 1.0 / 13.0) * s2 + 1.0 / 11.0) * s2 + 1.0 / 9.0
    p = (((p * s2 + 1.0 / 7.0) * s2 + 1.0 / 5.0) * s2 + 1.0 / 3.0) * s2 + 1.0
    return k * (_LN2_HIGH + _LN2_LOW) + 2.0 * s * p

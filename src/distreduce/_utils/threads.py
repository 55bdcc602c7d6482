"""Threads: a pool for the compiled loops, and a limit for BLAS and OpenMP.

Threaded loops are cut into chunks whose number depends on the problem only, never on the number of threads, and the
partial sums of the chunks are added in a fixed order. One thread and eight threads therefore give the same bits.

The chunks run on plain Python threads (the compiled kernels release the interpreter lock) instead of Numba's own
threading layers, which spin between calls, abort after ``fork`` and are not all safe to enter from several threads.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, threadpool_limits

Part = TypeVar("Part")


class Workers:
    """Run ``kernel(chunk, n_chunks, *args)`` for every chunk and return the parts in the order of the chunks."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

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
        self._limits: threadpool_limits | None = None

    def acquire(self) -> None:
        with self._lock:
            # After a fork there may be a limit without users, which is kept.
            if self._users == 0 and self._limits is None:
                _release_openblas()
                self._limits = threadpool_limits(limits=1)
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
    """Return the number of cores that this process may use."""
    # A process may be bound to some of the machine's cores.
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
    pool = Workers(effective_threads(n_jobs))
    try:
        with single_threaded_blas():
            yield pool
    finally:
        pool.close()

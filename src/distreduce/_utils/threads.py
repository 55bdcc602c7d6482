"""Threads: one pool for our compiled loops, one limit for everybody else's.

Every loop worth threading is cut into chunks whose number depends on the problem only, never on the number of threads,
and the chunks' partial sums are added in a fixed order. One thread and eight threads therefore give the same bits.

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

from distreduce._utils.versions import available_cores

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
        """The same one after another, for parts too large to be held all at once: as many as there are threads."""
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
            for future in ahead:  # an error, or nobody wants the rest
                future.cancel()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


SERIAL = Workers(1)


def _release_openblas() -> None:
    """Let this thread set OpenBLAS's limit: threadpoolctl 3.8 (not 3.6) ignores all but the first that set it."""
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
        """After a fork, in the child: fits that ran in other threads are not here, and nobody will open their lock.

        The limit they had set is, and is lifted after the first fit here.
        """
        self._lock = threading.Lock()
        self._users = 0


_LIMIT = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forget_users)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread: the same bits on any machine size, and no fight over the cores.

    SciPy's L-BFGS calls threaded BLAS on vectors of a few hundred numbers; next to other threads on two cores that took
    50 to 90 s where 0.4 s are enough.
    """
    _LIMIT.acquire()
    try:
        yield
    finally:
        _LIMIT.release()


def effective_threads(n_jobs: int | None) -> int:
    """Number of threads for scikit-learn's ``n_jobs``: None is every core, −1 is every core, −2 all but one.

    As in scikit-learn, OMP_NUM_THREADS lowers what None stands for; joblib sets it in processes that share the cores.
    """
    cores = available_cores()
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


@contextmanager
def workers(n_jobs: int | None = None) -> Iterator[Workers]:
    """A pool for the time of one fit, with BLAS held to one thread meanwhile."""
    pool = Workers(effective_threads(n_jobs))
    try:
        with single_threaded_blas():
            yield pool
    finally:
        pool.close()

"""Threads: fixed order of the parts, and limits that come back as they were."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np  # noqa: F401  (loads the BLAS whose threads are counted)
import pytest
from numba.core.dispatcher import Dispatcher
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import distreduce
from distreduce._utils import threads
from distreduce._utils.threads import SERIAL, Workers, effective_threads, single_threaded_blas, workers


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        if 2 not in blas_threads():
            pytest.skip("the BLAS here cannot be given two threads")
        yield


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_parts_come_in_the_order_of_the_chunks(n_threads):
    def kernel(chunk, n_chunks, base):
        time.sleep(0.002 * (n_chunks - chunk))  # later chunks finish first
        return base + chunk

    pool = Workers(n_threads)
    assert pool.run(kernel, 6, 100) == [100, 101, 102, 103, 104, 105]
    pool.close()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_stream_computes_no_more_ahead_than_there_are_threads(n_threads):
    started = []
    with workers(n_threads) as pool:
        stream = pool.stream(lambda chunk, n_chunks: started.append(chunk), 20)
        next(stream)
        time.sleep(0.05)
        assert len(started) <= n_threads
        stream.close()


def test_a_stream_that_is_left_starts_nothing_more():
    started = []
    with workers(2) as pool:
        stream = pool.stream(lambda chunk, n_chunks: started.append(chunk), 20)
        next(stream)
        stream.close()
    assert len(started) <= 2


def test_chunks_run_at_the_same_time():
    meeting = threading.Barrier(2, timeout=5)
    with workers(2) as pool:
        assert sorted(pool.run(lambda chunk, n_chunks: meeting.wait(), 2)) == [0, 1]


def test_an_error_in_a_chunk_reaches_the_caller():
    with workers(2) as pool, pytest.raises(ZeroDivisionError):
        pool.run(lambda chunk, n_chunks: 1 // chunk, 3)


def test_serial_pool_stays_in_the_calling_thread():
    assert SERIAL.run(lambda chunk, n_chunks: threading.get_ident(), 3) == [threading.get_ident()] * 3


def test_limit_is_restored_also_after_an_error(two_blas_threads):
    before = blas_threads()
    with pytest.raises(RuntimeError, match="inside"), single_threaded_blas():
        assert set(blas_threads()) == {1}
        raise RuntimeError("inside")
    assert blas_threads() == before


def test_two_overlapping_users_restore_the_original_limit(two_blas_threads):
    """First in, first out: the second must neither lose its limit nor restore the first one's."""
    before = blas_threads()
    second_in, first_out = threading.Event(), threading.Event()

    def second():
        with single_threaded_blas():
            second_in.set()
            assert first_out.wait(5)
            return blas_threads()

    with ThreadPoolExecutor(1) as executor:
        with single_threaded_blas():
            result = executor.submit(second)
            assert second_in.wait(5)
        first_out.set()
        assert set(result.result()) == {1}
    assert blas_threads() == before


def test_libraries_are_searched_again_only_after_an_import(monkeypatch):
    found = []
    monkeypatch.setattr(threads, "ThreadpoolController", lambda: found.append(1) or ThreadpoolController())
    with single_threaded_blas():  # whatever was imported before
        pass
    monkeypatch.setitem(sys.modules, "one_more_module", sys)
    searched = len(found)
    for _ in range(3):
        with single_threaded_blas():
            pass
    assert len(found) == searched + 1


def test_limit_holds_in_a_second_thread_after_use_in_the_first(two_blas_threads):
    """threadpoolctl lets one thread at a time control OpenBLAS; a fit that is over must not keep that control."""
    before = blas_threads()

    def limited():
        with single_threaded_blas():
            return set(blas_threads())

    assert limited() == {1}
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(limited).result() == {1}
    assert blas_threads() == before


def test_workers_hold_blas_to_one_thread(two_blas_threads):
    before = blas_threads()
    with workers(2):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_effective_threads(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [effective_threads(n) for n in (None, -1, -2, -20, 1, 3)] == [8, 8, 7, 1, 1, 3]


def test_omp_num_threads_lowers_what_none_stands_for(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert [effective_threads(n) for n in (None, -1, 3)] == [2, 8, 3]


def test_workers_use_one_openmp_thread_each(monkeypatch):
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threadpool_limits(limits=2, user_api="openmp"), workers(2) as pool:
        assert pool.run(lambda *_: _openmp_effective_n_threads(), 4) == [1] * 4


def test_functions_that_loops_call_are_inlined():
    """A copy of their own may round otherwise, and whether it runs depends on Numba's cache."""
    loops = {
        function
        for module in pkgutil.walk_packages(distreduce.__path__, "distreduce.")
        if "__main__" not in module.name
        for function in vars(importlib.import_module(module.name)).values()
        if isinstance(function, Dispatcher)
    }
    used = [loop.py_func.__globals__.get(name) for loop in loops for name in loop.py_func.__code__.co_names]
    called = {one for one in used if isinstance(one, Dispatcher)}
    assert len(called) > 20
    inlined = {one for one in called if one.targetoptions.get("forceinline") or one.targetoptions.get("inline")}
    assert sorted(one.__name__ for one in called - inlined) == []

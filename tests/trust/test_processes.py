"""The same bits from threads at once, from processes of joblib, and after fork and spawn as in one thread alone."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from trust.fits import FITS, X, fit, fit_in_loops, model

from distreduce._utils.threads import _LIMIT

KINDS = pytest.mark.parametrize("name", FITS)
# Python 3.12 warns of any fork beside threads; that ours survives it is what is tested here.
FORKING = pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")


@cache
def alone(name: str) -> bytes:
    """Fitted in one thread, with nothing beside it."""
    return fit(name, n_jobs=1)


@cache
def in_a_new_process() -> list[bytes]:
    """The same of all, in an interpreter of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(fit, FITS, [1] * len(FITS), timeout=300))


@pytest.mark.slow
def test_loops_compiled_now_and_loops_from_the_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    found = []
    for _ in range(2):  # the first process compiles
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            found.append(pool.submit(fit_in_loops).result(timeout=300))
    assert found[0] == found[1]


@KINDS
def test_fits_in_threads_at_once(name: str) -> None:
    expected = alone(name)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda n_jobs: fit(name, n_jobs), [2, None]))
    assert found == [expected] * 2


def test_different_fits_in_threads_at_once() -> None:
    expected = [alone(name) for name in FITS]
    with ThreadPoolExecutor(len(FITS)) as pool:
        assert list(pool.map(lambda name: fit(name, 2), FITS)) == expected


@pytest.mark.slow
def test_fits_in_processes_of_joblib() -> None:
    expected = in_a_new_process()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # loky's own, about workers that stop
        found = Parallel(n_jobs=2, backend="loky")(delayed(fit)(name, 2) for name in FITS)
    assert found == expected


@pytest.mark.slow
@FORKING
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_fits_in_a_process_that_was_forked() -> None:
    # What was forked has the loops of this process, and threads have been used by the time of the fork.
    expected = [alone(name) for name in FITS]
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        assert list(pool.map(fit, FITS, [2] * len(FITS), timeout=300)) == expected


@pytest.mark.slow
@FORKING
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("locked", [False, True], ids=["while it computes", "while it sets the limit"])
def test_a_fork_beside_a_running_fit_is_not_stuck(locked: bool) -> None:
    """The child has neither the thread of that fit nor anybody who would open its lock."""
    expected = alone("SDR")
    _LIMIT.acquire()
    held = _LIMIT._lock if locked else nullcontext()
    try:
        with held:
            child = multiprocessing.get_context("fork").Process(target=_fit_or_fail, args=(expected,))
            child.start()
        child.join(timeout=120)
        code = child.exitcode
        child.kill()
    finally:
        _LIMIT.release()
    assert code == 0


def _fit_or_fail(expected: bytes) -> None:
    """In the child: the same bits, and afterwards no limit that nobody holds."""
    os._exit(0 if fit("SDR", 2) == expected and _LIMIT._limits is None else 1)


def in_parts(ask: Callable[[Any], Any], batch: int) -> Any:
    """The answers to 28 rows, so many at a time, in threads at once."""
    with ThreadPoolExecutor(3) as pool:
        return np.concatenate(list(pool.map(ask, [X[start : start + batch] for start in range(0, 28, batch)])))


@pytest.mark.parametrize("batch", [1, 7])
def test_places_do_not_depend_on_threads_or_batches(batch: int) -> None:
    ask = model("SDR", 1).transform
    np.testing.assert_array_equal(in_parts(ask, batch), ask(X[:28]))


@pytest.mark.parametrize("batch", [1, 7])
def test_predictions_depend_on_batches_in_the_last_digits_only(batch: int) -> None:
    """A GP multiplies by BLAS, which rounds a row alone otherwise than among others."""
    ask = model("SDRGPRegressor", 1).predict
    np.testing.assert_allclose(in_parts(ask, batch), ask(X[:28]), rtol=1e-7, atol=1e-8)

"""The solvers run with BLAS on one thread, as they do in a fit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from distreduce._utils.threads import single_threaded_blas


@pytest.fixture(autouse=True)
def one_blas_thread() -> Iterator[None]:
    with single_threaded_blas():
        yield

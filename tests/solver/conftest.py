"""A Dask cluster on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Client of two worker processes of one thread each; not the current one."""
    distributed = pytest.importorskip("distributed")
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
    with (
        distributed.LocalCluster(
            **workers, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        ) as local,
        distributed.Client(local, set_as_default=False, timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """The same as the current client of a test."""
    with cluster.as_current():
        yield cluster

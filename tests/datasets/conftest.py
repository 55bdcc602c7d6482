"""Fixtures of the data sets: a cache of the test's own, no folder, and a server on this machine."""

from __future__ import annotations

import pytest
from datasets.dataset_server import MisbehavingServer

from distreduce.datasets import download


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache; nothing is found in DISTREDUCE_DATA."""
    monkeypatch.delenv("DISTREDUCE_DATA", raising=False)
    monkeypatch.setenv("DISTREDUCE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(cache, monkeypatch):
    """A server on loopback, asked three times with hardly a pause."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "ATTEMPTS", 3)
    monkeypatch.setattr(download, "PAUSE", 0.01)
    with MisbehavingServer() as running:
        yield running


@pytest.fixture
def hasty(server, monkeypatch):
    """Little patience with a server that says nothing; a busy machine may look like one, so only where it is."""
    monkeypatch.setattr(download, "SILENCE", 0.3)

"""Fetching from a server on this machine that also misbehaves."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from datasets.dataset_server import CONTENT, TABLE, small_set

import distreduce
from distreduce import datasets
from distreduce._utils import files
from distreduce.datasets import download, loading
from distreduce.exceptions import DatasetFileError, DownloadError


@pytest.fixture
def small(server, monkeypatch):
    """The name 'boston' stands for the small set on the server."""
    monkeypatch.setitem(loading.FILE_SETS, "boston", small_set(server.url()))


def left_in(cache: Path) -> list[str]:
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*"))


def test_values_are_those_of_the_server_from_the_download_and_from_the_cache(small, server, cache):
    for _ in range(2):
        d = datasets.load("boston")
        assert np.array_equal(np.column_stack([d.X, d.y]), TABLE)
    assert (len(server.requests), left_in(cache)) == (1, ["boston.csv"])
    assert np.array_equal(np.loadtxt(cache / "boston.csv", delimiter=",", skiprows=1), TABLE)


@pytest.mark.parametrize(
    ("manner", "requests", "said"),
    [
        ("404", 1, "404"),
        ("503", 3, "503"),
        ("half", 3, "the connection ended after"),
        ("wrong", 1, "sha256 differs"),
        ("silent", 3, "silent for 0.3 s"),
        ("stuck", 3, "silent for 0.3 s"),
        ("trickle", 3, r"the server sent only \d+ bytes in [01] s"),  # it would go on for 5 s
    ],
)
class TestAServerThatNeverSendsTheFile:
    @pytest.fixture
    def error(self, small, server, manner, request):
        """What a load ends in."""
        server.manners["/file"] = [manner] * 9
        if manner in ("silent", "stuck", "trickle"):
            request.getfixturevalue("hasty")
        with pytest.raises(DownloadError) as caught:
            datasets.load("boston")
        return str(caught.value)

    def test_is_one_error_that_says_what_happened_and_what_to_do(self, error, server, requests, said):
        assert re.search(said, error) and all(w in error for w in (server.url(), "boston.csv", "DISTREDUCE_DATA"))

    def test_is_asked_again_only_where_that_may_help_and_leaves_no_file(self, error, server, cache, requests, said):
        assert (len(server.requests), left_in(cache)) == (requests, [])


@pytest.mark.parametrize("manners", [["503", "503"], ["silent"], ["trickle"], ["stuck"], ["half"]], ids=" ".join)
def test_a_passing_failure_is_overcome(small, server, hasty, manners):
    server.manners["/file"] = list(manners)
    assert np.array_equal(datasets.load("boston").y, TABLE[:, -1])


def test_values_are_compared_even_if_the_file_is_the_one_published(server, cache, monkeypatch):
    other = CONTENT.replace(b"-", b" ")
    server.files["/file"] = other
    monkeypatch.setitem(loading.FILE_SETS, "boston", small_set(server.url(), content=other))
    with pytest.raises(DownloadError, match="its values are not those of 'boston'"):
        datasets.load("boston")


def test_a_page_instead_of_a_table_is_an_error(server, cache, monkeypatch):
    server.files["/file"] = b"<html>Service moved</html>"
    monkeypatch.setitem(loading.FILE_SETS, "boston", small_set(server.url(), content=server.files["/file"]))
    with pytest.raises(DownloadError, match="not a table of numbers"):
        datasets.load("boston")


def test_the_second_address_is_asked_when_the_first_has_gone(server, monkeypatch):
    monkeypatch.setitem(loading.FILE_SETS, "boston", small_set(server.url("/gone"), server.url()))
    assert len(datasets.load("boston").X) == 300


def test_a_file_much_larger_than_expected_is_not_read_to_the_end(small, server):
    server.files["/file"] = b"1 " * 10**6
    with pytest.raises(DownloadError, match="at most"):
        datasets.load("boston")


def test_nobody_there_is_an_error(cache, server, monkeypatch):
    monkeypatch.setitem(loading.FILE_SETS, "boston", small_set("http://127.0.0.1:9/file"))
    with pytest.raises(DownloadError, match=r"no connection \(Failed to establish a new connection: .*refused\)"):
        datasets.load("boston")


def test_a_cache_that_cannot_be_written_is_named(small, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(DatasetFileError, match="DISTREDUCE_CACHE"):
        datasets.load("boston")


def test_a_disk_that_is_full_leaves_no_file_behind(small, cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("distreduce._utils.files.os.fsync", full)
    with pytest.raises(DatasetFileError, match="No space left"):
        datasets.load("boston")
    assert left_in(cache) == []


def test_download_false_asks_nobody(small, server):
    with pytest.raises(DatasetFileError, match="distreduce data fetch boston"):
        datasets.load("boston", download=False)
    assert server.requests == []


def test_fetching_prints_nothing_where_no_terminal_is(small, capfd):
    datasets.load("boston")
    assert capfd.readouterr() == ("", "")


def test_one_who_holds_the_lock_too_long_is_reported(small, cache, monkeypatch):
    monkeypatch.setattr(download, "MAX_WAIT", 0.05)
    cache.mkdir()
    with files.exclusive(cache / ".boston.lock", OSError()), pytest.raises(DownloadError, match="another process"):
        datasets.load("boston")


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from datasets.dataset_server import small_set
from distreduce import datasets
from distreduce.datasets import download, loading
loading.FILE_SETS["boston"] = small_set({url!r})
print(len(datasets.load("boston").X))
"""


def start(server) -> subprocess.Popen[str]:
    paths = [str(Path(distreduce.__file__).parents[1]), str(Path(__file__).parents[1])]
    script = SCRIPT.format(paths=paths, url=server.url())
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def wait_for(what, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.01)


def test_a_killed_process_does_not_keep_the_next_from_fetching(small, server, cache):
    server.manners["/file"] = ["paused"]
    process = start(server)
    wait_for(lambda: server.requests)
    process.kill()
    process.communicate()
    datasets.load("boston")
    assert left_in(cache) == ["boston.csv"]


def test_two_processes_share_one_download(server, cache):
    server.manners["/file"] = ["paused"]
    processes = [start(server), start(server)]
    wait_for(lambda: server.requests)
    time.sleep(0.5)  # the second reaches the lock, or comes when all is done: one request either way
    server.go.set()
    outputs = [process.communicate()[0].strip() for process in processes]
    assert (outputs, len(server.requests), left_in(cache)) == (["300", "300"], 1, ["boston.csv"])


def test_a_file_of_several_parts_needs_them_all(server, cache, monkeypatch):
    spec = small_set(server.url())
    gone = replace(spec.remote[0], name="more.data", urls=(server.url("/gone"),))
    monkeypatch.setitem(loading.FILE_SETS, "boston", replace(spec, remote=(*spec.remote, gone)))
    with pytest.raises(DownloadError, match="/gone: the server answered 404"):
        datasets.load("boston")
    assert left_in(cache) == []

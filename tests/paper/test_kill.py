"""kill -9 at any point, the same command again: the results of a run that nobody disturbed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from distreduce.exceptions import StoreError
from distreduce_paper import Cell, load_experiment
from distreduce_paper.runner import run_cells
from distreduce_paper.store import Store

MAIN = "from distreduce.cli.main import main; main()"
SRC = Path(__file__).parents[2] / "src"

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")


@pytest.fixture
def command(fake):
    """``command(jobs)`` starts the run of the fake experiment in a process group of its own."""
    started = []

    def start(jobs: int) -> subprocess.Popen:
        arguments = ["reproduce", "run", "fake", "--plugin", fake.plugin, "--results", fake.store.folder]
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, arguments), "--jobs", str(jobs)],
            env={**os.environ, "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        _kill(process)
        process.stderr.close()


def _kill(process: subprocess.Popen) -> None:
    """The run and its workers at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _is_alive(process: subprocess.Popen) -> bool:
    """Whether any process of the group still runs; zombies do not count, and other systems have no /proc."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
            if int(group) == process.pid and state != "Z":
                return True
    return False


def _wait_for(condition) -> None:
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end, "the run did not come that far"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(fake, command):
    jobs = 2  # its workers must end with it
    cells = load_experiment("fake").cells()
    slowly = fake.plugin.with_name("slowly")  # time enough to be killed in the middle
    slowly.touch()
    killed = command(jobs)
    _wait_for(lambda: len(fake.store.results("fake")) >= 6)
    with pytest.raises(StoreError, match="Another run"):
        run_cells(cells, fake.store)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    with fake.store.writing():  # the lock died with the run
        pass
    _wait_for(lambda: not _is_alive(killed))  # and so do its workers
    slowly.unlink()

    before, begun = set(fake.results()), fake.calls()
    with fake.store.path("fake").open("ab") as file:
        file.write(b'{"cpu_seconds": 0.0')  # what a crash of the machine can leave
    run_cells(cells, fake.store, jobs=jobs, plugins=fake.plugins)
    assert 6 <= len(before) < len(cells)
    repeated = {key for key, times in Counter(fake.calls()).items() if times > 1}
    assert repeated == set(begun) - before  # what was under way, nothing that was finished

    undisturbed = fake._replace(store=Store(fake.store.folder / "undisturbed"))
    run_cells(cells, undisturbed.store)
    assert fake.results() == undisturbed.results()


def test_a_line_torn_anywhere_costs_one_cell(fake, cells):
    run_cells(cells("counts", seeds=3), fake.store)
    path, whole = fake.store.path("fake"), fake.results()
    content = path.read_bytes()
    last = content[:-1].rfind(b"\n") + 1
    for length in (last + 1, (last + len(content)) // 2, len(content) - 2):
        path.write_bytes(content[:length])
        assert run_cells(cells("counts", seeds=3), fake.store).computed == 1
    assert fake.results() == whole


def test_a_cell_is_what_its_record_says(fake, cells):
    run_cells(cells("counts"), fake.store)
    assert [Cell.from_dict(one) for one in fake.store.results("fake")] == cells("counts")

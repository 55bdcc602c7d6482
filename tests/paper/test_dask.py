"""A Dask scheduler computes what this process would."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

pytest.importorskip("dask.distributed", reason="Dask is an extra: pip install 'distreduce[large]'")

from dask.distributed import KilledWorker, LocalCluster

from distreduce.exceptions import InvalidInputError
from distreduce_paper import runner
from distreduce_paper.runner import RunCounts, run_cells
from distreduce_paper.store import Store

# Closing a cluster leaves sockets and event loops to the garbage collector.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def address():
    """A scheduler with two threads of this process, on the loopback interface."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, host="127.0.0.1", protocol="tcp"
        ) as cluster:
            yield cluster.scheduler_address


def test_results_do_not_depend_on_dask(fake, cells, address, tmp_path):
    todo = cells("counts", "raises", seeds=3)
    run_cells(todo, fake.store, dask=address, plugins=fake.plugins)
    here = fake._replace(store=Store(tmp_path / "here"))
    run_cells(todo, here.store)
    assert fake.results() == here.results()


def test_finished_cells_are_not_sent_again(fake, cells, address):
    run_cells(cells("counts"), fake.store)
    assert run_cells(cells("counts", seeds=2), fake.store, dask=address).computed == len(fake.calls()) - 1 == 1


def test_a_worker_that_dies_costs_its_own_cell_only(fake, cells, address, monkeypatch):
    compute = runner.compute_cell

    def die(cell, plugins=()):
        if cell.method == "dies":
            raise KilledWorker("compute", SimpleNamespace(address="tcp://127.0.0.1:1"), 3)
        return compute(cell, plugins)

    monkeypatch.setattr(runner, "compute_cell", die)
    assert run_cells(cells("dies", "counts"), fake.store, dask=address) == RunCounts(2, 0, 2, 1)
    assert "was killed" in next(one["error"]["message"] for one in fake.store.results("fake") if "error" in one)


def test_an_address_that_is_none_is_refused(fake, cells):
    with pytest.raises(InvalidInputError, match="--dask moon:x cannot be reached .* such as tcp://host:8786"):
        run_cells(cells("counts"), fake.store, dask="moon:x")

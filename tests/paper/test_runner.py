"""Every cell is computed once, in whatever way; what fails is recorded and stops nothing else."""

from __future__ import annotations

import math
import warnings
from collections import Counter

import pytest

from distreduce.exceptions import StoreError
from distreduce_paper import Cell, Selection, load_experiment, runner
from distreduce_paper.runner import RunCounts, compute_cell, run_cells


@pytest.fixture
def run(fake):
    """``run(cells, jobs=2)`` with the fake experiment's store and plugin."""
    return lambda cells, **options: run_cells(cells, fake.store, plugins=fake.plugins, **options)


@pytest.fixture
def error(fake):
    """The error that the store has of a method."""
    return lambda method: next(one["error"] for one in fake.store.results("fake") if one["method"] == method)


def test_finished_cells_are_kept_and_not_computed_again(run, fake, cells):
    run(cells("counts", seeds=2))
    assert run(cells("counts", seeds=3)) == RunCounts(requested=3, stored=2, computed=1, failed=0)
    assert fake.calls() == [cell.key for cell in cells("counts", seeds=3)]


def test_quick_cells_are_others_than_full_ones(run, fake):
    for quick in (False, True):
        run(load_experiment("fake").cells(Selection(methods=("counts",), seeds=1, quick=quick)))
    assert len(fake.results()) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_asked_for_twice_is_computed_once(run, fake, cells, jobs):
    assert run(2 * cells("counts"), jobs=jobs).requested == len(fake.calls()) == 1


def test_results_do_not_depend_on_the_number_of_processes(run, fake, cells):
    run(cells("counts", "raises", "sleeps", seeds=3), jobs=2)
    there = fake.results()
    fake.store.path("fake").unlink()
    run(cells("counts", "raises", "sleeps", seeds=3), jobs=1)
    assert there == fake.results()


def test_a_failing_cell_is_recorded_and_does_not_stop_the_others(run, error, cells):
    assert run(cells("counts", "raises", "sleeps")) == RunCounts(requested=3, stored=0, computed=3, failed=1)
    assert (error("raises")["type"], error("raises")["message"]) == ("ValueError", "no luck with seed 0")


def test_data_that_cannot_be_fetched_are_asked_for_once_and_again_by_the_next_run(run, fake, cells, error, monkeypatch):
    """The network concerns neither the cell nor the next run; attempts for each of a hundred cells take minutes."""
    monkeypatch.setattr(runner, "_unreachable", {})
    assert run(cells("offline", seeds=3)) == RunCounts(requested=3, stored=0, computed=3, failed=3)
    assert len(fake.calls()) == 1 and error("offline")["message"] == "no connection"
    fake.plugin.with_name("repaired").touch()
    monkeypatch.setattr(runner, "OFFLINE_SECONDS", 0.0)
    assert run(cells("offline", seeds=3)) == RunCounts(requested=3, stored=0, computed=3, failed=0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_traceback_names_the_line_but_no_folder_of_the_machine(run, error, cells, jobs):
    run(cells("raises", "counts"), jobs=jobs)
    last = error("raises")["traceback"].splitlines()[-1]
    assert "/" not in error("raises")["traceback"] and last.startswith("plugin.py:") and "raise ValueError" in last


def test_the_next_run_leaves_a_failed_cell(run, fake, cells):
    run(cells("raises"))
    assert run(cells("raises")).computed == 0 and len(fake.calls()) == 1


def test_retry_computes_failed_cells_alone_and_the_new_result_counts(run, fake, cells):
    run(cells("counts", "raises"))
    fake.plugin.with_name("repaired").touch()
    assert run(cells("counts", "raises"), retry=True) == RunCounts(2, 1, 1, 0)
    assert all(found[1] is None for found in fake.results().values())
    assert run(cells("raises"), retry=True).computed == 0


@pytest.mark.parametrize(
    ("method", "kind"),
    [("exits", "SystemExit"), ("returns an array", "InvalidInputError"), ("returns nothing", "InvalidInputError")],
)
def test_whatever_a_cell_does_is_its_own_failure(run, error, cells, method, kind):
    outcome = run(cells(method, "counts"))
    assert (outcome.computed, outcome.failed, error(method)["type"]) == (2, 1, kind)


def test_a_signal_stops_the_run_and_fails_no_cell(run, fake, cells, monkeypatch):
    """The command turns SIGTERM into this exit."""

    def stop(cell):
        raise SystemExit(128 + 15)

    monkeypatch.setattr(runner, "_check_scores", stop)
    with pytest.raises(SystemExit):
        run(cells("counts"))
    assert fake.results() == {}


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_own_cell_only(run, fake, cells):
    outcome = run(cells("dies", "counts", "sleeps"), jobs=2)
    record = next(one for one in fake.store.results("fake") if "error" in one)
    assert outcome == RunCounts(3, 0, 3, 1)
    assert record["method"] == "dies" and "out of memory" in record["error"]["message"]
    assert math.isnan(record["seconds"])  # nobody was left to measure it
    assert Counter(fake.calls())[cells("dies")[0].key] == 2  # once among others, once alone: it may have been another


def test_every_new_record_is_reported_and_none_for_what_was_there(run, cells):
    run(cells("counts"))
    seen = []
    run(cells("counts", "raises"), on_result=seen.append)
    assert [one and one["method"] for one in seen] == [None, "raises"]


def test_a_record_is_stored_before_it_is_reported(run, fake, cells):
    seen = []
    run(cells("counts", seeds=3), on_result=lambda record: seen.append(len(fake.store.results("fake"))))
    assert seen == [1, 2, 3]


def test_a_run_stopped_by_its_user_keeps_what_is_finished(run, fake, cells):
    def stop(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(cells("counts", seeds=3), on_result=stop)
    assert run(cells("counts", seeds=3)).stored == 1


def test_two_runs_at_once_on_one_folder_are_refused(run, fake, cells):
    with fake.store.writing(), pytest.raises(StoreError, match="Another run"):
        run(cells("counts"))


def test_a_record_says_with_what_and_where_and_at_what_cost(run, fake, cells):
    run(cells("sleeps"))
    [record] = fake.store.results("fake")
    assert record["seconds"] >= 0.05 and record["peak_mb"] > 10 and {"numpy", "python"} < set(record["versions"])


def test_an_experiment_without_cells_of_its_own_is_an_error_of_the_cell():
    assert "no cells of its own" in compute_cell(Cell("calibration", "boston", "linear", 0))["error"]["message"]


def test_filters_of_warnings_are_as_before(fake, cells):
    before = list(warnings.filters)
    compute_cell(cells("counts")[0], fake.plugins)
    assert warnings.filters == before

"""Finished cells as a frame."""

from __future__ import annotations

import random

import pytest

from distreduce_paper.experiment import Experiment, Selection
from distreduce_paper.store import Store, load_failures, load_frame, load_results


def experiment(**options):
    fields = {"name": "one", "title": "One", "paper": "Table 1", "report": lambda frame: [], "run": lambda cell: {}}
    grid = {"datasets": ("b", "a"), "methods": ("SDR", "DistR"), "grid": {"m": (20, 100)}, "seeds": 2}
    return Experiment(**{**fields, **grid, **options})


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def test_rows_follow_the_grid_whatever_the_order_of_the_records(store, make_result):
    cells = experiment().cells()
    for cell in random.Random(0).sample(cells, len(cells)):
        store.add(make_result(cell))
    found = load_frame(experiment(), store)[["data", "method", "m", "seed"]].itertuples(index=False, name=None)
    assert list(found) == [(cell.data, cell.method, cell.parameters["m"], cell.seed) for cell in cells]


def test_methods_beyond_the_grid_come_last(store, make_result):
    for method in ("a new one", "DistR", "SDR"):
        other = experiment(methods=(method,), datasets=("a",), grid={"m": (20,)}, seeds=1)
        store.add(make_result(other.cells()[0]))
    assert list(load_frame(experiment(), store)["method"]) == ["SDR", "DistR", "a new one"]


def test_failed_cells_are_apart(store, make_result):
    first, second, *_ = experiment().cells()
    store.add(make_result(first))
    store.add(make_result(second, error={"type": "E", "message": "", "traceback": ""}))
    assert (len(load_frame(experiment(), store)), len(load_failures(experiment(), store))) == (1, 1)


def test_quick_cells_are_shown_as_long_as_there_are_no_others(store, make_result):
    for cell in experiment().cells(Selection(quick=True)):
        store.add(make_result(cell))
    assert load_frame(experiment(), store)["quick"].all()


def test_full_cells_are_not_mixed_with_quick_ones(store, make_result):
    for cell in (*experiment().cells(Selection(quick=True)), experiment().cells()[0]):
        store.add(make_result(cell))
    assert list(load_frame(experiment(), store)["quick"]) == [False]


def test_an_experiment_shows_the_cells_of_its_sources(store, make_result):
    store.add(make_result(experiment().cells()[0]))
    assert len(load_results(experiment(name="two", run=None, sources=("one",)), store)) == 1


def test_an_empty_store_gives_an_empty_frame(store):
    assert load_frame(experiment(), store).empty

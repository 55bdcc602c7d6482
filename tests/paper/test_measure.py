"""What a cell took: time of all threads, and memory of its own."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from distreduce_paper.measure import Cost, charge, describe_machine, measure, package_versions
from distreduce_paper.runner import run_cells

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is that of the process's life")
MANY = 300 * 2**17  # float64 of 300 MiB


@linux
def test_a_large_cell_shows_its_memory_and_the_next_does_not(fake, cells):
    run_cells(cells("counts", "allocates"), fake.store)
    run_cells(cells("counts", seeds=2), fake.store)
    before, large, after = (record["peak_mb"] for record in fake.store.results("fake"))
    assert large > before + 290 and after < large - 200


@linux
def test_the_peak_before_an_inner_measurement_is_the_outer_ones():
    with measure() as outer:
        np.ones(MANY).sum()
        with measure() as inner:
            pass
    assert outer.peak_mb > inner.peak_mb + 200


@linux
def test_the_peak_of_an_inner_measurement_is_the_outer_ones_too():
    with measure() as outer:
        with measure() as inner:
            np.ones(MANY).sum()
    assert outer.peak_mb >= inner.peak_mb


def test_waiting_takes_seconds_but_no_cpu():
    with measure() as cost:
        time.sleep(0.2)
    assert cost.seconds >= 0.2 > 2 * cost.cpu_seconds


def test_an_error_is_measured_too():
    with pytest.raises(RuntimeError), measure() as cost:
        time.sleep(0.02)
        raise RuntimeError
    assert cost.seconds >= 0.02


def test_versions_are_those_that_are_imported():
    assert package_versions()["numpy"] == np.__version__


def test_the_machine_is_a_line():
    assert " cores, " in describe_machine() and "\n" not in describe_machine()


def test_work_done_before_is_charged_to_all_that_is_under_way():
    with measure() as outer, measure() as inner:
        charge(Cost(seconds=30.0, cpu_seconds=20.0))
    assert min(outer.seconds, inner.seconds) >= 30 and 21 > outer.cpu_seconds >= inner.cpu_seconds >= 20


def test_the_peak_of_work_done_before_is_that_of_all_that_is_under_way():
    with measure() as cost:
        charge(Cost(peak_mb=1e9))
    assert cost.peak_mb == 1e9

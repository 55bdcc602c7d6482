"""`distreduce bench`, called as a shell would call it."""

from __future__ import annotations

import json
from functools import partial

import pytest
from sklearn.datasets import load_iris

from distreduce.exceptions import NumericalError
from distreduce_paper import bench
from distreduce_paper.bench import Case

FAKES = {
    True: [Case("small, m = 2", (3, 2), "J", {"SDR": lambda: -12.34, "paper's algorithm": lambda: -11.0})],
    False: [Case("large, GP", (9, 2), "R²", {"SDRGPRegressor": lambda: 0.5, "scikit-learn's GP": lambda: 0.25})],
}


@pytest.fixture
def call(monkeypatch, distreduce):
    """``call("--quick")`` with fits that are made up."""
    monkeypatch.setattr(bench, "make_cases", lambda *, quick: FAKES[quick])
    monkeypatch.setattr(bench, "compile_loops", lambda: 1.5)
    monkeypatch.setattr(bench, "load_average", lambda: 0.0)
    return partial(distreduce, "bench")


def test_the_table_shows_both_sides(call):
    _, out, _ = call("--quick")
    assert all(word in out for word in ("small, m = 2", "3 × 2", "SDR", "paper's algorithm", "J -12.3", "J -11.0"))


def test_without_quick_the_full_cases_are_run(call):
    assert "R² 0.500" in call()[1]


def test_the_machine_is_described(call):
    out = " ".join(call("--quick")[1].split())
    assert all(word in out for word in ("cores", "GiB", "python 3.", "numpy ", "compilation (1.5 s)"))


def test_quiet_is_the_table_alone(call):
    _, out, err = call("--quick", "--quiet")
    assert "J -12.3" in out and "GiB" not in out and err == ""


def test_json_has_runs_and_machine(call):
    found = json.loads(call("--quick", "--json")[1])
    (result,) = found["results"]
    timings = [(one["method"], one["value"]) for one in result["timings"]]
    assert timings == [
        ("SDR", -12.34),
        ("paper's algorithm", -11.0),
    ]
    assert {"machine", "versions", "compilation_seconds", "load"} < set(found)


def test_a_busy_machine_is_said(call, monkeypatch):
    monkeypatch.setattr(bench, "load_average", lambda: 1e3)
    assert "kept the machine busy (load 1000.0 at the start)" in " ".join(call("--quick")[1].split())


def test_a_system_without_a_load_says_nothing_of_it(call, monkeypatch):
    monkeypatch.setattr(bench, "load_average", lambda: None)
    assert "busy" not in call("--quick")[1]


def test_nothing_is_written(call, tmp_path):
    call("--quick")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_shows_how_far_it_is(call, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in call("--quick")[2]


def test_wrong_usage_is_exit_code_2(call):
    assert call("--moon")[0] == 2


def test_a_fit_that_fails_is_one_sentence_and_exit_code_1(call, monkeypatch):
    def fail() -> float:
        raise NumericalError("The numbers ran away.")

    monkeypatch.setitem(FAKES, True, [Case("small", (3, 2), "J", {"SDR": fail})])
    assert call("--quick") == (1, "", "distreduce: The numbers ran away.\n")


@pytest.mark.slow
def test_a_small_case_for_real(distreduce, monkeypatch):
    X, y = (part[::4] for part in load_iris(return_X_y=True))
    monkeypatch.setattr(bench, "load_iris", lambda *, return_X_y: (X, y))  # what the loops are compiled with
    monkeypatch.setattr(bench, "make_cases", lambda *, quick: [bench._reduction("iris", X, y, 5)])
    (result,) = json.loads(distreduce("bench", "--quick", "--json")[1])["results"]
    assert len(result["timings"]) == 2 and all(one["seconds"] > 0 for one in result["timings"])

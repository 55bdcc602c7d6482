"""`distreduce reproduce`, called as a shell would call it."""

from __future__ import annotations

import json
import sys
import types
from functools import partial

import pytest

import distreduce_paper as room
import distreduce_paper.report.write  # noqa: F401 - its defaults are the names before they are replaced
from distreduce_paper import Experiment, runner
from distreduce_paper.report.blocks import Text
from distreduce_paper.store import Store


def _run(cell):
    if cell.method == "DKL":
        raise ValueError("a [bold] message " + 20 * "of many words ")
    return {"score": cell.seed / 3}


def _report(frame):
    return [Text(f"There are {len(frame)} rows.")]


MADE = (
    Experiment("first", "The first", "Table 8", _report, datasets=("a", "b"), methods=("linear", "DGP"), run=_run),
    Experiment("shown", "Shown", "Figure 9", _report, datasets=("a",), methods=("linear",), sources=("first",)),
    Experiment("timed", "Timed", "", _report, datasets=("a",), methods=("linear",), seeds=1, run=_run, exclusive=True),
)


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    """Three experiments in place of the paper's."""
    for one in MADE:
        module = types.ModuleType(f"distreduce_paper.experiments.{one.name}")
        module.EXPERIMENT = one
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(room, "NAMES", tuple(one.name for one in MADE))


@pytest.fixture
def call(distreduce):
    """``call("list")`` is ``distreduce reproduce list``."""
    return partial(distreduce, "reproduce")


def rows(folder: str, experiment: str = "first") -> set:
    return {(one["data"], one["method"], one["seed"], one["quick"]) for one in Store(folder).results(experiment)}


def test_help_names_the_commands(call):
    code, out, _ = call("--help")
    assert code == 0 and all(word in out for word in ("list", "run", "all", "report"))


def test_without_a_command_there_is_help(call):
    """With exit code 2, or before click 8.2 with 0."""
    code, *texts = call()
    assert code in (0, 2) and "Usage" in "".join(texts)


def test_list_names_what_can_be_rebuilt(call):
    code, out, _ = call("list")
    assert code == 0 and all(word in out for word in ("Table 8", "Figure 9", "from the cells of first"))


def test_list_counts_what_is_there(call):
    call("run", "first", "--seeds", "2", "--methods", "linear", "--methods", "DKL", "--datasets", "a")
    found = json.loads(call("list", "--json")[1])
    assert [(row["name"], row["cells"], row["done"], row["failed"]) for row in found] == [
        ("first", 20, 2, 0),
        ("shown", 0, 0, 0),
        ("timed", 1, 0, 0),
    ]


def test_list_counts_failures_of_its_own_rows(call, monkeypatch):
    broken = Experiment("timed", "", "", _report, datasets=("a",), methods=("linear",), seeds=3, run=lambda cell: 1 / 0)
    monkeypatch.setattr(sys.modules["distreduce_paper.experiments.timed"], "EXPERIMENT", broken)
    call("run", "timed", "--seeds", "2")
    assert json.loads(call("list", "--json")[1])[-1]["failed"] == 2


def test_list_writes_nothing(call, tmp_path):
    call("list")
    assert list(tmp_path.iterdir()) == []


def test_run_says_what_it_did(call):
    expected = "20 cells: 0 already stored, 20 computed, 0 of these failed; results in results/paper\n"
    assert call("run", "first") == (0, expected, "")


def test_the_same_command_computes_nothing_again(call):
    call("run", "first")
    assert "20 already stored, 0 computed" in call("run", "first")[1]


def test_quick_results_are_kept_apart(call):
    call("run", "first", "--quick")
    assert {quick for *_, quick in rows("results/paper-quick")} == {True} and not rows("results/paper")


def test_selection(call):
    call("run", "first", "--datasets", "b", "--methods", "DGP", "--seeds", "2", "--results", "mine")
    assert rows("mine") == {("b", "DGP", 0, False), ("b", "DGP", 1, False)}


def test_an_experiment_brings_the_cells_that_it_shows(call):
    call("run", "shown", "--seeds", "1")
    assert len(rows("results/paper")) == 4


def test_a_registered_method_that_is_no_row_can_be_run(call):
    call("run", "first", "--methods", "ARD GP", "--datasets", "a", "--seeds", "1")
    assert rows("results/paper") == {("a", "ARD GP", 0, False)}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("frist",), "There is no experiment 'frist'. Did you mean 'first'? There are first, shown, timed."),
        (("first", "--datasets", "c"), "--datasets 'c' is in none of first; there are 'a', 'b'."),
        (("first", "--methods", "SDR"), "--methods 'SDR' is in none of first; there are 'ARD GP',"),
    ],
)
def test_a_wrong_name_is_one_sentence_and_exit_code_1(call, arguments, sentence):
    code, out, err = call("run", *arguments)
    assert (code, out) == (1, "") and err.startswith(f"distreduce: {sentence}") and err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("--seeds", "0"), ("--jobs", "0"), ("--seeds", "two"), ("--moon",)])
def test_wrong_usage_is_exit_code_2(call, arguments):
    assert call("run", "first", *arguments)[0] == 2


def test_a_wrong_name_writes_nothing(call, tmp_path):
    call("all", "--methods", "moon")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_cell_is_said_on_one_line_and_the_run_goes_on(call):
    code, out, err = call("run", "first", "--methods", "DKL", "--methods", "linear", "--seeds", "1", "--datasets", "a")
    assert code == 1 and "2 computed, 1 of these failed" in out
    assert err.startswith("failed: first: DKL on a, seed 0: ValueError: a [bold] message") and err.count("\n") == 2


def test_failed_cells_are_counted_with_the_file_of_their_tracebacks(call):
    names = ("--methods", "DKL", "--methods", "linear", "--seeds", "1", "--datasets", "a")
    *_, said = call("run", "first", *names)[2].splitlines()
    file = "results/paper/first.jsonl"
    assert said.startswith(f"distreduce: 1 of 2 cells have failed; their tracebacks are in {file} ")


def test_the_file_that_is_named_has_the_traceback(call):
    call("run", "first", "--methods", "DKL", "--seeds", "1", "--datasets", "a")
    (record,) = Store("results/paper").results("first")
    assert "test_reproduce.py" in record["error"]["traceback"]


def test_cells_that_failed_before_still_make_exit_code_1(call):
    names = ("--methods", "DKL", "--seeds", "1", "--datasets", "a")
    call("run", "first", *names)
    code, out, _ = call("run", "first", *names)
    assert code == 1 and "0 computed" in out


def test_failures_that_were_not_asked_for_are_not_counted(call):
    call("run", "first", "--methods", "DKL", "--seeds", "1", "--datasets", "a")
    assert call("run", "first", "--methods", "linear")[0] == 0


def test_all_writes_the_report_in_spite_of_failures(call, tmp_path):
    code, *_ = call("all", "--quick", "--methods", "DKL", "--methods", "linear")
    assert code == 1 and (tmp_path / "results" / "paper-quick" / "report.md").exists()


def test_retry_tries_again(call):
    names = ("--methods", "DKL", "--methods", "linear", "--seeds", "1", "--datasets", "a")
    call("run", "first", *names)
    assert "1 already stored, 1 computed, 1 of these failed" in call("run", "first", *names, "--retry")[1]


def test_nothing_to_run_is_said(call, monkeypatch):
    one = Experiment("timed", "", "", _report, datasets=("a",), methods=("linear",), run=_run, skips=lambda *pair: True)
    monkeypatch.setattr(sys.modules["distreduce_paper.experiments.timed"], "EXPERIMENT", one)
    assert call("run", "timed")[0::2] == (
        1,
        "distreduce: There is nothing to run: none of these methods goes with any of these data sets.\n",
    )


def test_a_folder_in_use_is_one_sentence_and_exit_code_1(call):
    with Store("mine").writing():
        code, _, err = call("run", "first", "--results", "mine")
    assert code == 1 and err.startswith("distreduce: Another run is writing to mine;")


def test_a_damaged_file_is_one_sentence_and_exit_code_1(call, tmp_path):
    (tmp_path / "first.jsonl").write_text("<<<<<<< HEAD\n")
    code, _, err = call("list", "--results", ".")
    assert code == 1 and err.startswith("distreduce: Line 1 of first.jsonl is not the result of a cell")


def test_a_file_as_folder_is_one_sentence_and_exit_code_1(call, tmp_path):
    (tmp_path / "taken").touch()
    assert call("run", "first", "--results", "taken")[0::2] == (1, "distreduce: File exists: taken.\n")


def test_cells_whose_seconds_matter_come_last_and_one_at_a_time(call, monkeypatch):
    asked = []

    def note(cells, store, *, jobs, dask, **options):
        asked.append(({cell.experiment for cell in cells}, jobs, dask))
        return runner.RunCounts(0, 0, 0, 0)

    monkeypatch.setattr(runner, "run_cells", note)
    call("run", "timed", "first", "--jobs", "2", "--dask", "tcp://host:8786")
    assert asked == [({"first"}, 2, "tcp://host:8786"), ({"timed"}, 1, None)]


def test_all_runs_everything_and_writes_the_report(call, tmp_path):
    code, out, _ = call("all", "--quick")
    written = {path.name for path in (tmp_path / "results" / "paper-quick").iterdir()}
    assert code == 0 and {"first.jsonl", "timed.jsonl", "report.md", "report.html"} < written and "report.html" in out


def test_the_report_is_rebuilt_byte_for_byte(call, tmp_path):
    call("all", "--quick")
    for out in ("one", "two"):
        call("report", "--quick", "--out", out)
    texts = [sorted((path.name, path.read_bytes()) for path in (tmp_path / out).glob("*.*")) for out in ("one", "two")]
    assert len(texts[0]) >= 2 and texts[0] == texts[1]


@pytest.mark.parametrize("arguments", [("list",), ("run", "first", "--methods", "DKL", "--seeds", "1"), ("report",)])
def test_what_is_no_terminal_gets_no_control_characters(call, arguments):
    _, out, err = call(*arguments)
    assert (out + err) and all(character.isprintable() or character == "\n" for character in out + err)


def test_a_terminal_shows_how_far_it_is_and_the_time_left(call, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    _, _, err = call("run", "first")
    assert "20/20" in err and "left" in err and "0:00:0" in err

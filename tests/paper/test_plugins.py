"""Methods and data sets of one's own, by --plugin; and the page of the docs that shows how."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from distreduce.exceptions import InvalidInputError
from distreduce_paper import Cell, methods
from distreduce_paper.plugins import load_plugins
from distreduce_paper.runner import compute_cell, run_cells
from distreduce_paper.store import Store

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


@pytest.fixture
def plugin(tmp_path):
    """``plugin("text")`` is the path of a file with this text."""

    def write(text: str, name: str = "mine.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def reproduce(distreduce):
    """``reproduce("run", "regression", ...)`` with results in the folder "out"; returns the exit code."""
    return lambda *arguments: distreduce("reproduce", *arguments, "--results", "out")[0]


def example(name: str) -> tuple[str, str]:
    return "--plugin", str(DOCS / "examples" / f"{name}.py")


def scores(folder: Path, experiment: str) -> dict[str, dict[str, float]]:
    """Results by method."""
    return {one["method"]: one["result"] for one in Store(folder).results(experiment)}


def test_a_plugin_is_loaded_once(plugin, monkeypatch):
    path = plugin("import sys\nsys.loaded = getattr(sys, 'loaded', 0) + 1\n")
    monkeypatch.setattr(sys, "loaded", 0, raising=False)
    load_plugins((path, path))
    load_plugins((path,))
    assert sys.loaded == 1


def test_two_plugins_of_one_name_in_two_folders_are_both_loaded(plugin):
    text = "from distreduce_paper.methods import add_predictor\nadd_predictor({!r})\n"
    load_plugins((plugin(text.format("one"), "a/mine.py"), plugin(text.format("two"), "b/mine.py")))
    assert {"one", "two"} < set(methods.PREDICTORS)


@pytest.mark.parametrize("name", ["none.py", "", "mine.txt"])
def test_what_is_no_python_file_is_refused(plugin, tmp_path, name):
    plugin("", "mine.txt")
    with pytest.raises(InvalidInputError, match="is not a readable Python file"):
        load_plugins((str(tmp_path / name),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere_to_be_found", r"line 1: ModuleNotFoundError: .*nowhere_to_be_found"),
        ("x = 1\n\ny = x / 0\n", "line 3: ZeroDivisionError"),
        ("def f(:", r"SyntaxError: .*mine\.py, line 1"),
        ("import sys; sys.exit(3)", "line 1: SystemExit: 3"),
    ],
)
def test_a_broken_plugin_is_refused_with_the_line_that_broke(plugin, text, message):
    with pytest.raises(InvalidInputError, match=rf"--plugin .*mine\.py could not be loaded: {message}"):
        load_plugins((plugin(text),))


def test_a_plugin_that_was_repaired_is_loaded(plugin):
    with pytest.raises(InvalidInputError):
        load_plugins((plugin("1 / 0"),))
    load_plugins((plugin("from distreduce_paper.methods import add_predictor\nadd_predictor('one')"),))
    assert "one" in methods.PREDICTORS


def test_a_missing_plugin_is_one_sentence_and_exit_code_1(distreduce):
    sentence = "distreduce: --plugin /nowhere/mine.py is not a readable Python file.\n"
    assert distreduce("reproduce", "run", "regression", "--plugin", "/nowhere/mine.py") == (1, "", sentence)


def test_a_method_of_a_plugin_reaches_other_processes(tmp_path):
    plugins = tuple(example(name)[1] for name in ("bayesian_ridge", "diabetes"))
    cells = [Cell("regression", "diabetes", "Bayesian ridge", seed, quick=True) for seed in range(2)]
    assert run_cells(cells, Store(tmp_path), jobs=2, plugins=plugins).failed == 0


def test_the_method_of_the_docs_runs_next_to_the_others_and_is_a_row_of_the_report(reproduce, tmp_path):
    names = ("--datasets", "diabetes", "--methods", "Bayesian ridge", "--methods", "linear")
    plugins = (*example("bayesian_ridge"), *example("diabetes"))
    assert reproduce("run", "regression", *plugins, *names, "--quick", "--seeds", "1") == 0
    found = scores(tmp_path / "out", "regression")
    assert found["Bayesian ridge"]["mse"] == pytest.approx(found["linear"]["mse"], rel=0.1)
    assert reproduce("report") == 0
    assert "Bayesian ridge" in (tmp_path / "out" / "report.md").read_text()


def test_the_embedding_of_the_docs_runs_with_neighbours(reproduce, tmp_path):
    names = ("--datasets", "s_curve", "--methods", "SIR", "--quick", "--seeds", "1")
    assert reproduce("run", "neighbours", *example("inverse_regression"), *names) == 0
    assert scores(tmp_path / "out", "neighbours")["SIR"]["knn_test"] > 0.9


def test_the_embedding_of_the_docs_runs_with_a_gp():
    load_plugins((example("inverse_regression")[1], example("diabetes")[1]))
    assert compute_cell(Cell("regression", "diabetes", "SIR-GP", 0, quick=True))["result"]["mse"] < 1.0


def test_the_directions_of_the_docs_are_those_of_a_line(rng):
    load_plugins((example("inverse_regression")[1],))
    X = rng.normal(size=(500, 4))
    line = np.array([1.0, -2.0, 0.0, 0.5])
    place = methods.EMBEDDINGS["SIR"](1, 0).fit(X, X @ line).transform(X)[:, 0]
    assert abs(np.corrcoef(place, X @ line)[0, 1]) > 0.99


def test_the_reduction_of_the_docs_runs():
    load_plugins((example("sampled_prototypes")[1], example("diabetes")[1]))
    found = compute_cell(Cell("prototypes", "diabetes", "sampled", 0, {"n_prototypes": 7}, quick=True))
    assert found["result"]["used"] == 7


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_printed_in_the_page_as_it_is_run_and_is_short(path):
    page, text = (DOCS / "adding-a-method.md").read_text(), path.read_text()
    assert text in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(text.splitlines()) <= 30

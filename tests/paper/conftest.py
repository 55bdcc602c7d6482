"""Registries that tests may fill, a fake experiment, finished cells, and the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import distreduce_paper as room
from distreduce.cli.main import main
from distreduce_paper import Cell, methods, problems
from distreduce_paper.plugins import load_plugins
from distreduce_paper.store import CellResult, Store

# An experiment whose methods do what their names say. Every call leaves a line in a file beside it.
PLUGIN = """
import os, signal, sys, time, types
from pathlib import Path

import numpy as np

import distreduce_paper as room
from distreduce.exceptions import DownloadError
from distreduce_paper import Experiment

CALLS = Path(__file__).with_name("calls")


def run(cell):
    with CALLS.open("a") as calls:
        calls.write(cell.key + "\\n")
    if cell.method == "sleeps":
        time.sleep(0.5 if Path(__file__).with_name("slowly").exists() else 0.05)
    if cell.method == "raises" and not Path(__file__).with_name("repaired").exists():
        raise ValueError(f"no luck with seed {cell.seed}")
    if cell.method == "offline" and not Path(__file__).with_name("repaired").exists():
        raise DownloadError("no connection")
    if cell.method == "exits":
        sys.exit("enough")
    if cell.method == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.method == "returns an array":
        return {"score": np.arange(3)}
    if cell.method == "returns nothing":
        return None
    if cell.method == "allocates":
        return {"sum": float(np.ones(300 * 2**17).sum())}  # 300 MiB of float64
    numbers = np.random.default_rng([cell.seed, len(cell.data), len(cell.method)]).normal(size=3)
    return {"score": float(numbers[0]), "curve": numbers.tolist()}


module = types.ModuleType("distreduce_paper.experiments.fake")
module.EXPERIMENT = Experiment(
    "fake", "A fake", "nothing", lambda frame: [], datasets=("here", "there"), methods=("counts", "sleeps"), run=run
)
sys.modules[module.__name__] = module
room.NAMES = (*room.NAMES, "fake")  # a worker may be used by several tests
"""


class Fake(NamedTuple):
    """The fake experiment: a plugin that brings it, a store, and what was computed."""

    plugin: Path
    store: Store

    @property
    def plugins(self) -> tuple[str, ...]:
        return (str(self.plugin),)

    def calls(self) -> list[str]:
        """Keys of the cells in the order in which their computation began."""
        path = self.plugin.with_name("calls")
        return path.read_text().splitlines() if path.exists() else []

    def results(self) -> dict[str, object]:
        """What was computed, by cell: all that must not depend on how and where."""
        records = self.store.results("fake")
        return {Cell.from_dict(one).key: (one.get("result"), one.get("error"), one["versions"]) for one in records}


@pytest.fixture(autouse=True)
def _clean_room(monkeypatch):
    """Registries, names and plugins as they were before the test."""
    monkeypatch.setattr(room, "NAMES", room.NAMES)
    for registry in (methods.PREDICTORS, methods.EMBEDDINGS, methods.REDUCTIONS, problems.PROBLEMS):
        for name, one in list(registry.items()):
            monkeypatch.setitem(registry, name, one)
    kept = {id(registry): set(registry) for registry in _registries()}
    modules = set(sys.modules)
    yield
    for registry in _registries():
        for name in set(registry) - kept[id(registry)]:
            registry.discard(name) if isinstance(registry, set) else registry.pop(name)
    for name in set(sys.modules) - modules:
        if name.startswith(("distreduce_plugin_", "distreduce_paper.experiments.fake")):
            del sys.modules[name]


def _registries() -> list:
    return [
        methods.PREDICTORS, methods.EMBEDDINGS, methods.REDUCTIONS, problems.PROBLEMS, *problems._ADDED.values()
    ]  # fmt: skip


@pytest.fixture
def fake(tmp_path) -> Fake:
    """The fake experiment, registered here; other processes need its plugin."""
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN)
    made = Fake(plugin, Store(tmp_path / "results"))
    load_plugins(made.plugins)
    return made


@pytest.fixture
def cells() -> Callable[..., list[Cell]]:
    """``cells("counts", "raises", seeds=2)``: cells of the fake experiment, in this order."""

    def make(*names: str, seeds: int = 1) -> list[Cell]:
        return [Cell("fake", "here", name, seed) for name in names for seed in range(seeds)]

    return make


@pytest.fixture
def blobs() -> tuple[np.ndarray, np.ndarray]:
    """60 standardized samples of three overlapping classes, registered as the data set "blobs"."""
    X, y = make_blobs(60, 4, centers=3, cluster_std=6.0, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    problems.add_problem("blobs", problems.Problem(lambda seed: (X, y), "classification", perplexity=10.0))
    return X, y


@pytest.fixture
def make_result() -> Callable[..., CellResult]:
    """``make_result(cell)`` is what the store keeps of a cell; ``error=...`` or ``result=...`` replaces its result."""

    def make(cell: Cell, **outcome: Any) -> CellResult:
        costs = {"seconds": 30.0, "cpu_seconds": 1.0, "peak_mb": 1.0}
        about = {"versions": {"numpy": "2.0"}, "machine": "A & B"}
        return {**cell.as_dict(), **costs, **about, **(outcome or {"result": {"score": 1.0}})}

    return make


@pytest.fixture
def distreduce(monkeypatch, capsys, tmp_path) -> Callable[..., tuple[int, str, str]]:
    """``distreduce("bench", "--quick")`` in an empty folder returns exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["distreduce", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return call

"""What a call leaves behind in the process: its result, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from trust.global_state import changed, snapshot

from distreduce import SDR, DistR, SDRGPClassifier, SDRGPRegressor, persistence, plotting
from distreduce.interop import save_map
from distreduce.report import write_report
from distreduce_paper.baselines import DKLRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
NUMBERS = X[:, 0] + 0.1 * RNG.normal(size=30)
CLASSES = np.where(NUMBERS > 0, "b", "a")
SMALL = {"perplexity": 5.0, "max_iter": 3, "tol": 1e-2}


@cache
def reduction() -> Any:
    return SDR(n_prototypes=5, random_state=0, **SMALL).fit(X, CLASSES)


@cache
def regressor() -> Any:
    return SDRGPRegressor(gp_steps=5, perplexity=5.0, random_state=0).fit(X, NUMBERS)


@cache
def classifier() -> Any:
    return SDRGPClassifier(2, gp_steps=5, perplexity=5.0, random_state=0).fit(X, CLASSES)


def save_and_load(folder: Path) -> None:
    reduction().save(folder / "model")
    persistence.load(folder / "model")


# Without a seed where there is a choice: a draw would then come from a global generator, if it did at all.
CALLS: dict[str, Callable[[Path], Any]] = {
    "SDR.fit": lambda _: SDR(n_prototypes=5, **SMALL).fit(X, NUMBERS),
    "SDR.fit, random start": lambda _: SDR(n_prototypes=5, init="random", **SMALL).fit(X, CLASSES),
    "SDR.fit, two threads": lambda _: SDR(n_jobs=2, **SMALL).fit(X, NUMBERS),
    "SDR.fit, torch": lambda _: SDR(n_prototypes=5, backend="torch", **SMALL).fit(X, NUMBERS),
    "SDR.fit, refused": lambda _: refused(lambda: SDR().fit(X * np.nan, NUMBERS)),
    "DistR.fit": lambda _: DistR(n_prototypes=5, **SMALL).fit(X),
    "SDR.transform": lambda _: reduction().transform(X),
    "SDR.summary": lambda _: reduction().summary(),
    "SDRGPRegressor.fit": lambda _: SDRGPRegressor(gp_steps=5, perplexity=5.0).fit(X, NUMBERS),
    "SDRGPRegressor.predict": lambda _: regressor().predict(X, return_std=True),
    "SDRGPClassifier.fit": lambda _: SDRGPClassifier(2, gp_steps=5, perplexity=5.0).fit(X, CLASSES),
    "SDRGPClassifier.predict_proba": lambda _: classifier().predict_proba(X),
    "DKLRegressor.fit": lambda _: DKLRegressor(hidden_layer_sizes=(8,), n_epochs=2).fit(X, NUMBERS),
    "plot_embedding": lambda folder: plotting.plot_embedding(reduction(), CLASSES).figure.savefig(folder / "a.png"),
    "write_report": lambda folder: write_report(folder / "a.html", reduction(), X, CLASSES),
    "save and load": save_and_load,
    "save_map": lambda folder: save_map(reduction(), folder / "map.npz"),
}


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        call()


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Short fits say that they are; the tests before may have left figures."""
    mpl.use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    mpl.pyplot.close("all")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_the_process_as_it_was(name: str, tmp_path: Path) -> None:
    CALLS[name](tmp_path)  # libraries that are imported now may set what they like
    mpl.pyplot.close("all")
    before = snapshot()
    CALLS[name](tmp_path)
    mpl.pyplot.close("all")  # a figure that was asked for is the caller's
    assert changed(before, snapshot()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda: np.random.random(),  # noqa: NPY002 (what must be seen)
        lambda: torch.rand(1),
        lambda: warnings.simplefilter("ignore", DeprecationWarning),
        lambda: mpl.rcParams.update({"font.size": mpl.rcParams["font.size"] + 1}),
        lambda: np.seterr(all="ignore"),
    ],
    ids=["numpy", "torch", "warnings", "matplotlib", "errors"],
)
def test_a_change_is_seen(change: Callable[[], object]) -> None:
    with mpl.rc_context(), np.errstate():
        before = snapshot()
        change()
        assert len(changed(before, snapshot())) == 1


def test_input_arrays_are_not_written_to() -> None:
    given = (X.copy(), pd.Series(NUMBERS.copy()), np.ones(30))
    for array in (given[0], given[2]):
        array.flags.writeable = False
    SDR(n_prototypes=5, random_state=0, **SMALL).fit(given[0], given[1], sample_weight=given[2])
    np.testing.assert_array_equal(given[1], NUMBERS)

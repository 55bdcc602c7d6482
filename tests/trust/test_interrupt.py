"""An interrupt from the keyboard leaves the best state so far as a fitted estimator, says so, and still interrupts."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from trust.faults import MODELS, NUMBERS, X, numbers

from distreduce import SDR, SDRGPRegressor
from distreduce.cli._models import FitOptions, fit_picture
from distreduce.exceptions import InterruptedFitWarning
from distreduce.solver import loop as solve
from distreduce.solver.objective import Steps
from distreduce.tables.prepare import prepare

pytestmark = pytest.mark.filterwarnings("ignore::distreduce.exceptions.SolverConvergenceWarning")
KINDS = pytest.mark.parametrize("kind", MODELS)
STEPS: dict[str, Any] = {"max_inner_iter": 6, "tol": 0.0, "max_iter": 5}


@pytest.fixture
def interrupted(monkeypatch):
    """Interrupt an outer iteration after its T-step; 0 is the first embedding."""

    def at(iteration: int) -> None:
        real = Steps.z_step

        def embed(self: Any, coupled: Any, start: Any, number: int) -> Any:
            if number == iteration:
                raise KeyboardInterrupt
            return real(self, coupled, start, number)

        monkeypatch.setattr(Steps, "z_step", embed)

    return at


@KINDS
def test_the_best_so_far_is_fitted(kind, interrupted):
    interrupted(3)
    model = MODELS[kind](**STEPS)
    with pytest.warns(InterruptedFitWarning, match="that of outer iteration [12]"), pytest.raises(KeyboardInterrupt):
        model.fit(X, NUMBERS)
    assert np.isfinite(numbers(model)).all() and model.n_iter_ in (2, 3) and not model.converged_
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


@KINDS
def test_it_is_what_a_fit_of_so_many_iterations_finds(kind, interrupted):
    expected = MODELS[kind](**{**STEPS, "max_iter": 2}).fit(X, NUMBERS)
    interrupted(3)
    model = MODELS[kind](**STEPS)
    with pytest.warns(InterruptedFitWarning), pytest.raises(KeyboardInterrupt):
        model.fit(X, NUMBERS)
    np.testing.assert_array_equal(model.embedding_, expected.embedding_)


@KINDS
def test_before_there_is_anything_the_estimator_stays_unfitted(kind, interrupted):
    interrupted(0)
    model = MODELS[kind](**STEPS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, NUMBERS)
    with pytest.raises(NotFittedError):
        model.transform(X)


@KINDS
def test_with_a_checkpoint_the_fit_goes_on_to_the_same_bits(kind, tmp_path, monkeypatch):
    expected = MODELS[kind](**STEPS).fit(X, NUMBERS)
    model = MODELS[kind](**STEPS, checkpoint=tmp_path / "file")
    with monkeypatch.context() as patched:
        real = Steps.z_step
        patched.setattr(Steps, "z_step", lambda *args: _raise() if args[3] == 4 else real(*args))
        with pytest.warns(InterruptedFitWarning, match="fit again"), pytest.raises(KeyboardInterrupt):
            model.fit(X, NUMBERS)
    real, done = solve._advance, []
    monkeypatch.setattr(solve, "_advance", lambda steps, at: done.append(at.iteration + 1) or real(steps, at))
    np.testing.assert_array_equal(model.fit(X, NUMBERS).embedding_, expected.embedding_)
    assert done == [4, 5]


def _raise() -> None:
    raise KeyboardInterrupt


def test_the_interrupt_wins_over_a_warning_made_an_error(interrupted):
    interrupted(2)
    model = MODELS["SDR, dense"](**STEPS)
    with warnings.catch_warnings(), pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("error")
        model.fit(X, NUMBERS)
    assert model.n_iter_ == 2


def test_the_warning_points_at_the_callers_line(interrupted):
    interrupted(2)
    with pytest.warns(InterruptedFitWarning) as caught, pytest.raises(KeyboardInterrupt):
        SDR(**STEPS, n_prototypes=8, random_state=0).fit(X, NUMBERS)
    assert caught[0].filename == __file__


@pytest.fixture
def python_handles_interrupts():
    """As it does where a person types Ctrl-C; workers of pytest-xdist ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_real_signal(monkeypatch, python_handles_interrupts):
    """SIGINT, sent while a fit with two threads computes."""
    real, deadline = solve._advance, time.monotonic() + 60

    def late(steps: Any, at: Any) -> Any:
        if at.iteration == 2:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        while at.iteration == 2 and time.monotonic() < deadline:
            real(steps, at)
        return real(steps, at)

    monkeypatch.setattr(solve, "_advance", late)
    model = MODELS["SDR, dense"](**{**STEPS, "n_jobs": 2})
    with pytest.warns(InterruptedFitWarning, match="outer iteration 2"), pytest.raises(KeyboardInterrupt):
        model.fit(X, NUMBERS)
    assert np.isfinite(numbers(model)).all()


def test_a_gp_whose_reduction_was_interrupted_is_not_fitted(interrupted):
    """There are no GPs yet, and without them no predictions; its checkpoint has the reduction."""
    interrupted(1)
    model = SDRGPRegressor(n_prototypes=8, perplexity=10.0, random_state=0)
    with pytest.warns(InterruptedFitWarning), pytest.raises(KeyboardInterrupt):
        model.fit(X, NUMBERS)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_the_command_keeps_the_picture_that_there_is(interrupted, tmp_path):
    table = pd.DataFrame(X).assign(y=NUMBERS)
    table.to_csv(tmp_path / "table.csv", index=False)
    data = prepare(tmp_path / "table.csv", ["y"])
    interrupted(2)
    with pytest.warns(InterruptedFitWarning, match="outer iteration 1"):
        model = fit_picture(data, FitOptions(prototypes=8, checkpoint=str(tmp_path / "file")), np.arange(120))
    assert model.n_iter_ == 2 and (tmp_path / "file").exists()

"""A fit that stops early says so, and progress is shown when asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from distreduce import SDR, DistR
from distreduce.estimators import _base
from distreduce.exceptions import SolverConvergenceWarning

HURRIED: dict[str, Any] = {"max_iter": 1, "tol": 0.0, "max_inner_iter": 3, "random_state": 0}


@pytest.mark.parametrize("category", [SolverConvergenceWarning, ConvergenceWarning])
@pytest.mark.parametrize("estimator", [SDR, DistR])
@pytest.mark.parametrize("n_prototypes", [None, 9])
def test_stopping_early_warns(category: type, estimator: type, n_prototypes: Any, classification: Any) -> None:
    with pytest.warns(category, match=r"max_iter=1 .*Raise max_iter"):
        estimator(n_prototypes=n_prototypes, **HURRIED).fit(*classification)


def test_warning_points_at_the_callers_line(classification: Any) -> None:
    with pytest.warns(SolverConvergenceWarning) as caught:
        SDR(**HURRIED).fit(*classification)
    assert caught[0].filename == __file__


def test_stopping_early_is_told_by_the_attribute(classification: Any) -> None:
    model = SDR(**HURRIED)
    with pytest.warns(SolverConvergenceWarning):
        model.fit(*classification)
    assert model.converged_ is False


def test_result_of_a_hurried_fit_can_be_used(classification: Any) -> None:
    X, y = classification
    model = SDR(**HURRIED)
    with pytest.warns(SolverConvergenceWarning):
        model.fit(X, y)
    assert np.isfinite(model.transform(X)).all()


def test_warning_as_error_leaves_a_fitted_model(classification: Any) -> None:
    model = SDR(**HURRIED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SolverConvergenceWarning):
            model.fit(*classification)
    assert np.isfinite(model.transform(classification[0])).all()


def test_defaults_converge(classification: Any) -> None:
    assert SDR(random_state=0).fit(*classification).converged_


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_verbose_shows_a_bar(estimator: type, classification: Any, capsys: Any) -> None:
    estimator(verbose=1, random_state=0).fit(*classification)
    shown = capsys.readouterr()
    assert estimator.__name__ in shown.out + shown.err and "objective" in shown.out + shown.err


@pytest.mark.parametrize(
    ("affinity", "stages"),
    [
        ("dense", ["affinity", "start", "map", "first embedding"]),
        ("sparse", ["neighbours", "affinity", "start", "map", "first embedding"]),
    ],
)
def test_the_bar_names_what_comes_before_the_iterations(
    affinity: str, stages: list[str], classification: Any, monkeypatch: Any
) -> None:
    shown: list[str] = []

    @contextmanager
    def progress(estimator: SDR) -> Iterator[Callable[..., None]]:
        yield lambda state, completed=None: shown.append(state)

    monkeypatch.setattr(_base, "progress", progress)
    SDR(n_prototypes=9, affinity=affinity, random_state=0).fit(*classification)
    assert [state.removesuffix(" …") for state in shown if state.endswith(" …")] == stages


def test_bar_goes_to_standard_error(classification: Any, capsys: Any) -> None:
    """Standard output belongs to the program's results."""
    SDR(verbose=1, random_state=0).fit(*classification)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("estimator", [SDR, DistR])
def test_quiet_by_default(estimator: type, classification: Any, capsys: Any) -> None:
    estimator(random_state=0).fit(*classification)
    assert capsys.readouterr() == ("", "")


def test_verbose_changes_no_bit(classification: Any, capsys: Any) -> None:
    loud, quiet = (SDR(verbose=level, random_state=0).fit_transform(*classification) for level in (1, 0))
    assert np.array_equal(loud, quiet)

"""What ``distreduce fit`` computes, one step after the other."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import InvalidParameterError

from distreduce.cli._comparison import METHODS, Comparison
from distreduce.cli._draw import drawn
from distreduce.cli._models import Choices, ours, picture
from distreduce.estimators import SDR
from distreduce.exceptions import (
    AffinityConvergenceWarning,
    DistReduceWarning,
    InterruptedFitWarning,
    InvalidInputError,
    SolverConvergenceWarning,
)
from distreduce.tables.prepare import PreparedTable


@dataclass(frozen=True)
class Study:
    """Everything that a folder of results is made of; rows are those of the file."""

    model: SDR
    fit_rows: NDArray[np.intp]
    predictor: Any
    comparison: Comparison | None
    seconds: dict[str, float]
    notes: tuple[str, ...]


def steps(choices: Choices) -> int:
    """How often :func:`run_study` calls `advance`."""
    return len(METHODS) + 2 if choices.predict else 1


def run_study(data: PreparedTable, choices: Choices, advance: Callable[[str], object]) -> Study:
    """Compare, fit the predictor and the picture; `advance` is told in a few words what comes next."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DistReduceWarning)
        try:
            study = _run(data, choices, advance)
        except InvalidParameterError as error:
            raise InvalidInputError(str(error)) from error
        except MemoryError as error:
            raise InvalidInputError(
                f"The memory does not suffice ({error}); lower --max-rows, or --drop columns."
            ) from error
    ours = [warning for warning in caught if issubclass(warning.category, DistReduceWarning)]
    said = [_in_words(warning.category, str(warning.message), choices) for warning in ours]
    return Study(**{**vars(study), "notes": (*study.notes, *dict.fromkeys(said))})


def _in_words(category: type[Warning], message: str, choices: Choices) -> str:
    """A warning without advice about parameters that the command line does not have."""
    if issubclass(category, SolverConvergenceWarning):
        return "A fit stopped at its limit of iterations: it is the best found, and not quite converged."
    if issubclass(category, AffinityConvergenceWarning):
        return "The neighbours that rows see are not quite as many as --perplexity says; another one may do."
    if issubclass(category, InterruptedFitWarning):
        does = "fits it to its end" if choices.checkpoint is None else f"goes on from {choices.checkpoint}"
        return f"The picture was interrupted: it is the best until then. The same command with --overwrite {does}."
    return message


def _run(data: PreparedTable, choices: Choices, advance: Callable[[str], object]) -> Study:
    usable = np.flatnonzero(data.usable)
    rows = drawn(usable, data.target.labels, choices.max_rows, choices.seed)
    _check_numbers(choices, len(rows))
    comparison = Comparison(data, choices) if choices.predict else None
    predictor, seconds, notes = None, {}, []
    if len(rows) < len(usable):
        notes.append(
            f"The models are fitted to {len(rows):,} of {len(usable):,} rows, drawn at random (--max-rows); the others "
            "are placed by the map."
        )
    if comparison is not None:
        comparison.run(advance)
        seconds = {f"held out, {name}": spent for name, spent in comparison.seconds.items()}
        if not len(comparison.test):
            notes.append("There is no held-out part (too few rows, or --test-size 0), so there are no scores.")
        advance("predictor")
        started = time.perf_counter()
        known = rows[data.target.known[rows]]
        predictor = ours(data.target, data.X.shape[1], choices).fit(data.X[known], data.target.values(known))
        seconds["predictor"] = time.perf_counter() - started
    advance("picture")
    started = time.perf_counter()
    model = picture(data, choices, rows, predictor)
    seconds["picture"] = time.perf_counter() - started
    return Study(model, rows, predictor, comparison, seconds, tuple(notes))


def _check_numbers(choices: Choices, n: int) -> None:
    """Say before the long work, and in words of the command line, what the picture would refuse after it."""
    if choices.prototypes is not None and choices.prototypes > n:
        raise InvalidInputError(
            f"--prototypes {choices.prototypes} is more than the {n} rows of the fit; give fewer, or 0 for one a row."
        )
    if choices.perplexity is not None and choices.perplexity >= n:
        raise InvalidInputError(
            f"--perplexity {choices.perplexity:g} must be below the number of rows of the fit, {n}; try {n / 3:.3g}."
        )

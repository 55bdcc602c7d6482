"""What ``distreduce fit`` computes: a comparison on held-out rows, then the predictor and the picture on all rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils._param_validation import InvalidParameterError

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array, Index
from distreduce.baselines.constant_spread import fit_weighted
from distreduce.cli._models import MODELS, OURS, TREES, FitOptions, fit_picture, make_model, take_blocks, take_weights
from distreduce.cli._split import describe_repeats, draw_rows, find_units, split_rows
from distreduce.cli._tables import GROUP, WEIGHT, class_table, judgement_table, number_table, read_held_out, truth_table
from distreduce.estimators import SDR
from distreduce.estimators._fit_context import FEW
from distreduce.exceptions import (
    AffinityConvergenceWarning,
    DistReduceWarning,
    FewSamplesWarning,
    InterruptedFitWarning,
    InvalidInputError,
    NoSignalWarning,
    OptimisticPictureWarning,
    SolverConvergenceWarning,
)
from distreduce.gp._refit import refit
from distreduce.gp._target_scale import spread
from distreduce.metrics.held_out import judge_numbers
from distreduce.report.predictions import score_held_out
from distreduce.solver.dense import MOST_CROSS_FITTED
from distreduce.tables.prepare import PreparedTable

PREDICTOR, PICTURE = "predictor", "picture"  # steps of a study
# The scored predictor is kept, and its experts learn from the held-out rows as well, if it has seen so many rows, and
# the others are at most this share of them: what left-out rows taught it then hardly changes.
ENOUGH_SEEN, MOST_UNSEEN = 1500, 0.3


@dataclass(frozen=True)
class Comparison:
    """Training and held-out rows (none if too few have a target), scores and seconds by model, and predictions.

    `predictor` is the one that was scored.
    """

    train: Index
    test: Index
    scores: dict[str, dict[str, float]]
    seconds: dict[str, float]
    predictions: pd.DataFrame | None
    how: str = ""  # a sentence: how the rows were held out
    predictor: Any = None


@dataclass(frozen=True)
class Study:
    """Everything that a folder of results is made from; rows are those of the file."""

    model: SDR
    fit_rows: Index
    predictor: Any
    comparison: Comparison | None
    seconds: dict[str, float]
    notes: tuple[str, ...]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each expert in the predictor, the mean over targets."""
        if self.predictor is None:
            return {}
        stacks = getattr(self.predictor, "stacks_", None) or (self.predictor.stack_,)
        names = dict.fromkeys(name for stack in stacks for name in stack.weights)
        return {name: float(np.mean([stack.weights.get(name, 0.0) for stack in stacks])) for name in names}

    @property
    def held_out(self) -> pd.DataFrame | None:
        """The predictions of all models for the held-out rows, None without any."""
        return None if self.comparison is None else self.comparison.predictions


def plan_steps(options: FitOptions) -> dict[str, float]:
    """Return the steps that :func:`run_study` announces by `advance`, with the share of the time that each takes."""
    if not options.predict:
        return {PICTURE: 0.8}
    scores = {OURS: 0.49, TREES: 0.04}  # of 2,000 rows
    return {_score_step(name): scores.get(name, 0.0) for name in MODELS} | {PREDICTOR: 0.17, PICTURE: 0.22}


def _score_step(model: str) -> str:
    return f"held-out score, {model}"


def run_study(data: PreparedTable, options: FitOptions, advance: Callable[[str], object]) -> Study:
    """Compare the models, then fit the predictor and the picture; `advance` is called with the name of each step."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DistReduceWarning)  # "default" would hide the same warning of a second model
        try:
            study = _run(data, options, advance)
        except InvalidParameterError as error:
            raise InvalidInputError(str(error)) from error
        except MemoryError as error:
            raise InvalidInputError(f"Not enough memory ({error}); lower --max-rows, or --drop columns.") from error
    # What the picture is worth is always printed, and the reductions inside the predictors are not looked at.
    said = (FewSamplesWarning, NoSignalWarning, OptimisticPictureWarning)
    ours = [w for w in caught if issubclass(w.category, DistReduceWarning) and not issubclass(w.category, said)]
    # Several fits may warn of the same: dict.fromkeys keeps the first of equal notes.
    notes = [_translate(warning.category, str(warning.message), options) for warning in ours]
    return replace(study, notes=(*study.notes, *dict.fromkeys(notes)))


def _translate(category: type[Warning], message: str, options: FitOptions) -> str:
    """Return a warning without advice about parameters that the command line does not have."""
    if issubclass(category, SolverConvergenceWarning):
        return "A fit stopped at its limit of iterations before it converged; its best result is used."
    if issubclass(category, AffinityConvergenceWarning):
        return "Some rows do not have as many neighbours as --perplexity asks for; another value may help."
    if issubclass(category, InterruptedFitWarning):
        does = "completes it" if options.checkpoint is None else f"resumes from {options.checkpoint}"
        return f"The picture was interrupted; its best result is used. The same command with --overwrite {does}."
    return message


def _run(data: PreparedTable, options: FitOptions, advance: Callable[[str], object]) -> Study:
    # Rows of the fit.
    usable = np.flatnonzero(data.usable)
    rows = draw_rows(usable, data.target.labels, options.picture_rows, options.seed)
    _check_options(options, len(rows))
    comparison, predictor, seconds, notes = None, None, {}, []
    if len(rows) < len(usable):
        notes.append(
            f"The picture is fitted to {len(rows):,} of {len(usable):,} rows, drawn at random (--max-rows), and "
            "places the others. The predictor uses every row with a target."
        )
    known = usable[data.target.known[usable]]  # every row, however many the picture shows
    # Scores first, from models that never see the held-out rows; then the predictor, from all rows.
    if options.predict:
        comparison = compare_models(data, options, advance)
        seconds = {f"held out, {name}": spent for name, spent in comparison.seconds.items()}
        if len(known) < FEW:
            notes.append(
                f"Only {len(known)} rows have a target. Scores and intervals of so few rows are rough: another "
                "sample of them may say something else."
            )
        if not len(comparison.test):
            notes.append("There is no held-out part (too few rows, or --test-size 0), so there are no scores.")
        advance(PREDICTOR)
        started = time.perf_counter()
        predictor = fit_predictor(data, options, known, comparison)
        seconds["predictor"] = time.perf_counter() - started
    notes += describe_repeats(data, known, split=comparison is not None and len(comparison.test) > 0)
    # The picture comes last, because an interrupt keeps what it has reached and everything before it.
    advance(PICTURE)
    started = time.perf_counter()
    model = fit_picture(data, options, rows)
    seconds["picture"] = time.perf_counter() - started
    return Study(model, rows, predictor, comparison, seconds, tuple(notes))


def _check_options(options: FitOptions, n: int) -> None:
    """Raise before the long work, and in terms of the command line, what the picture would raise after it."""
    if options.prototypes is not None and options.prototypes > n:
        raise InvalidInputError(
            f"--prototypes {options.prototypes} is more than the {n} rows of the fit; give fewer, or 0 for one per row."
        )
    if (options.group or options.time) and n > MOST_CROSS_FITTED:
        most = f"{MOST_CROSS_FITTED:,}"
        raise InvalidInputError(f"With --group and --time the picture takes at most {most} rows; lower --max-rows.")
    if options.perplexity is not None and options.perplexity >= n:
        raise InvalidInputError(
            f"--perplexity {options.perplexity:g} must be below the number of rows of the fit, {n}; try {n / 3:.3g}."
        )


def compare_models(data: PreparedTable, options: FitOptions, advance: Callable[[str], object]) -> Comparison:
    """Fit the predictor and simple models to the training rows, and score them on the held-out rows."""
    train, test, how = split_rows(data, options)
    if not len(test):
        return Comparison(train, test, {}, {}, None, how)
    seconds, tables, models = {}, [], {}
    front = pd.DataFrame({"row": test})
    if data.aside.weights is not None:
        front[WEIGHT] = data.aside.weights[test]
    if (units := find_units(data, test)) is not None:
        front[GROUP] = units
    front = front.join(truth_table(data.target, test))
    for name in MODELS:
        advance(_score_step(name))
        started = time.perf_counter()
        model = models[name] = make_model(name, data.target, options)
        with single_threaded_blas():  # trees of so few rows grow no faster with more threads
            fit_weighted(model, *_training_data(data, train))
            table = front.join(_predict(model, data, train, test))
        seconds[name] = time.perf_counter() - started
        table.insert(0, "model", name)
        tables.append(table)
    held_out = pd.concat(tables, ignore_index=True)
    scores = {name: score_held_out(each) for name, each in read_held_out(held_out, data.target, {}).items()}
    return Comparison(train, test, scores, seconds, held_out, how, models[OURS])


def fit_predictor(data: PreparedTable, options: FitOptions, known: Index, scored: Comparison) -> Any:
    """Return the predictor of all rows with a target.

    It is the one that was scored, whose experts learn from the held-out rows too, if it has seen most of the rows and
    every class; else a new one.
    """
    others = np.setdiff1d(known, scored.train)
    seen, labels = len(scored.train), data.target.labels
    knows_all = labels is None or set(labels[others]) <= set(labels[scored.train])
    if seen >= ENOUGH_SEEN and len(others) <= MOST_UNSEEN * seen and knows_all:
        return refit(scored.predictor, *_training_data(data, np.r_[scored.train, others]))
    return fit_weighted(make_model(OURS, data.target, options), *_training_data(data, known))


def _training_data(data: PreparedTable, rows: Index) -> tuple[Array, NDArray[Any], Array | None, Any]:
    return data.X[rows], data.target.values(rows), take_weights(data, rows), take_blocks(data, rows)


def _predict(model: Any, data: PreparedTable, train: Index, test: Index) -> pd.DataFrame:
    """Return the predictions of the held-out rows; for numbers, also the spread of the training targets as a unit."""
    X, target = data.X[test], data.target
    if target.task == "classification":
        return class_table(model.predict_proba(X), model.classes_)
    scale, y = spread(target.values(train), take_weights(data, train)), target.values(test)
    judged = judgement_table(len(y), scale, judge_numbers(model, X, y), target.names)
    return number_table(model, X, target.names).join(judged)

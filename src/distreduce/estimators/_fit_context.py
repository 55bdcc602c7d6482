"""What surrounds a fit: a transaction that sets all attributes or none, a monitor, and warnings at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator

from distreduce._utils.hashing import fingerprint
from distreduce._utils.text import warn_user
from distreduce.estimators._validate import require_seed
from distreduce.exceptions import (
    FewSamplesWarning,
    InterruptedFitWarning,
    NoSignalWarning,
    NumericalError,
    OptimisticPictureWarning,
    RolledBackWarning,
    SolverConvergenceWarning,
)
from distreduce.solver.checkpoint import Checkpoint, check_place
from distreduce.solver.loop import Monitor, Reduction
from distreduce.solver.objective import Record
from distreduce.solver.sharded import LANDMARKS

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9: the same estimators without ``set_callbacks``

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn's mixin."""


UNUSED = ("history_.cka",)  # NaN for other measures of dependence, and without targets


@contextmanager
def whole_fit(estimator: Any, *, afresh: bool = True) -> Iterator[SimpleNamespace]:
    """Make `fit` transactional: on any exception, restore the previous state, including an earlier fit.

    If `afresh`, nothing of that fit is left otherwise: fits differ in what they set. Failures of LAPACK become a
    :class:`NumericalError`, and fitted attributes with NaN or infinite values raise one. Set `best` of the yielded
    object to the result that such an error should carry.
    """
    # A shallow copy is enough: fits replace attributes and do not change them in place.
    before, fitting = dict(vars(estimator)), SimpleNamespace(best=None)
    try:
        for name in [name for name in before if afresh and name.endswith("_")]:
            delattr(estimator, name)
        yield fitting
        check_fitted(estimator)
    except BaseException as error:  # a KeyboardInterrupt must not leave half a fit either
        vars(estimator).clear()
        vars(estimator).update(before)
        if isinstance(error, np.linalg.LinAlgError):
            message = f"A matrix could not be factorised ({error}); scale X and y."
            raise NumericalError(message, best=fitting.best) from error
        if isinstance(error, NumericalError) and error.best is None:  # an error of the solver carries its own
            error.best = fitting.best
        raise


def check_fitted(estimator: Any) -> None:
    """Raise NumericalError if a fitted attribute holds NaN or infinite values."""
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    for name, value in fitted.items():
        found = _not_finite(name, value)
        if found is not None:
            raise NumericalError(
                f"{type(estimator).__name__} found numbers in {found} that are not finite; look for very large values "
                "in X and y, and scale them."
            )


def _not_finite(name: str, value: Any) -> str | None:
    """Return the name of the first part that is not finite, or None; nested estimators have checked themselves."""
    if isinstance(value, BaseEstimator) or name in UNUSED:
        return None
    if isinstance(value, float | np.floating):
        return None if math.isfinite(value) else name
    if isinstance(value, np.ndarray):
        return None if value.dtype.kind != "f" or np.isfinite(value).all() else name
    parts = _parts(value)
    return next((found for part in parts if (found := _not_finite(f"{name}.{part}", parts[part]))), None)


def _parts(value: Any) -> Mapping[Any, Any]:
    """Return the parts of tables, sequences and objects of this package; nothing for other objects."""
    if sparse.issparse(value):
        return {"data": value.data}
    if isinstance(value, pd.DataFrame):
        return {column: value[column].to_numpy() for column in value.columns}
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    return vars(value) if type(value).__module__.startswith("distreduce.") else {}  # such as KernelMap


Show = Callable[..., object]  # update the bar: `state` is a text, `completed` the number of outer iterations


@contextmanager
def progress(estimator: Any) -> Iterator[Show]:
    """Show a bar on standard error while the block runs, if the estimator is verbose; yield what updates it."""
    if not estimator.verbose:
        yield lambda **_: None
        return
    from rich.console import Console  # imported on first use: most fits are silent
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # On standard error: standard output belongs to the results of the program.
    with Progress(*columns, TextColumn("{task.fields[state]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(type(estimator).__name__, total=estimator.max_iter, state="samples …")
        yield partial(bar.update, task)
        bar.update(task, completed=estimator.max_iter)  # a fit that converged early is complete too


@contextmanager
def watch(
    estimator: Any, X: Any, y: Any, sample_weight: Any, show: Show, checkpoint: Checkpoint | None
) -> Iterator[Monitor]:
    """Yield the monitor of a fit: it advances the bar, reports to scikit-learn's callbacks, keeps the checkpoint."""
    with _callbacks(estimator, X, y, sample_weight) as report:

        def callback(record: Record) -> object:
            cka = "" if math.isnan(record.cka) else f"  CKA {record.cka:.3f}"
            show(completed=record.iteration, state=f"objective {record.objective:.6g}{cka}")
            return report(record)

        yield Monitor(callback, checkpoint, lambda stage: show(state=f"{stage} …"))


@contextmanager
def _callbacks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Callable[[Record], bool]]:
    """Yield a function that reports an outer iteration to scikit-learn's callbacks; it returns True to stop the fit.

    The fit is one task, every outer iteration a task in it. Callbacks get no fitted estimator during the fit, because
    the map is computed at its end.
    """
    if not hasattr(estimator, "_init_callback_context"):  # scikit-learn before 1.9
        yield lambda record: False
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    try:
        # One more than outer iterations: the Z-step at the initial coupling.
        fit = estimator._init_callback_context(max_subtasks=estimator.max_iter + 1)
        fit.call_on_fit_task_begin(**given)
        task = fit.subcontext("outer iteration").call_on_fit_task_begin(**given)

        def advance(_: Record) -> bool:
            nonlocal task
            # A record arrives when its iteration has ended, so end one task and begin the next.
            stop = task.call_on_fit_task_end(**given)
            task = fit.subcontext("outer iteration").call_on_fit_task_begin(**given)
            return bool(stop)

        yield advance
        task.call_on_fit_task_end(**given)
        fit.call_on_fit_task_end(**given, reconstruction_attributes={})
    finally:
        # scikit-learn's decorator tears down after a method; here it decorates an empty one.
        with_callbacks(lambda _: None)(estimator)


# Parameters that do not change the result, and may differ between a fit and its resumption.
FREE = ("checkpoint", "n_jobs", "verbose")


def check_checkpoint(estimator: Any, n: int, m: int, *, sharded: bool) -> str | None:
    """Check that the checkpoint can be written, and return the fingerprint of the parameters; None without one."""
    if estimator.checkpoint is None:
        return None
    require_seed(estimator)
    # Room for two files, since the new one is written beside the old: 20 bytes per sample, and arrays of size m.
    size = 20 * n + 8 * m * (m + estimator.n_components + (LANDMARKS if sharded else 0))
    check_place(Path(estimator.checkpoint), 2 * size + 2**16)
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in FREE}
    return fingerprint(type(estimator).__name__, given)


# Accuracy, or R². With the defaults the difference was above this on 3 of 25 tables: many classes, or many features.
MUCH_BETTER = 0.2
FEW = 30  # samples with a target


def warn_about_few(n: int, what: str) -> None:
    """Warn if so few samples have a target that what they say of new ones is rough."""
    if n < FEW:
        message = f"Only {n} samples have a target: {what} of so few are rough, and another sample may say otherwise."
        warn_user(message, FewSamplesWarning)


def _warn_about_picture(estimator: Any, *, has_signal: bool, n_known: int) -> None:
    """Warn of few targets, of targets left out, or if the plane as fitted promises more than left-out samples keep."""
    scores = getattr(estimator, "neighbor_scores_", None)
    if scores is not None:
        warn_about_few(n_known, "the picture and its left-out scores")
    if not has_signal:
        fate = (
            "so y was left out of the fit. The picture shows the geometry of X alone, as DistR does. Look for missing "
            "features or a wrong scale of X; a number for eta uses y nevertheless."
        )
        if estimator.eta != "auto":
            fate = f"but eta={estimator.eta} uses y nevertheless: the picture says little about new samples."
        message = f"X does not predict left-out targets clearly better than their mean does, {fate}"
        warn_user(message, NoSignalWarning)
    elif scores is not None and scores["fitted"] - scores["left_out"] > MUCH_BETTER:
        measure = "accuracy" if estimator.task_ == "classification" else "R²"
        message = (
            f"The fitted plane promises more than it keeps: {measure} of 10 nearest neighbours is "
            f"{scores['fitted']:.2f} as fitted and {scores['left_out']:.2f} for left-out samples. Look at "
            "embedding_left_out_ instead of embedding_, or use the defaults for eta, map_reg and length_scale."
        )
        warn_user(message, OptimisticPictureWarning)


def warn_about_fit(estimator: Any, reduction: Reduction, *, has_signal: bool, n_known: int) -> None:
    """Warn of steps undone, an interrupt or missing convergence, and of the picture. The estimator is fitted by now."""
    name, faults = type(estimator).__name__, reduction.faults
    if faults:
        more = f" ({len(faults) - 1} more like it)" if len(faults) > 1 else ""
        message = f"{name} kept the best state that it had found. {faults[0]}{more}. "
        warn_user(message + "Look for very large values in X and y, and scale them.", RolledBackWarning)
    if reduction.interrupted:
        again = "" if estimator.checkpoint is None else "; fit again to resume from its checkpoint"
        message = f"{name} was interrupted. It is fitted with the best state until then, that of outer iteration "
        warn_user(f"{message}{reduction.history[-1].iteration}{again}.", InterruptedFitWarning)
    # A callback that stops a fit, and faults, explain the missing convergence.
    elif not (reduction.converged or reduction.stopped or faults):
        last = [record.objective for record in reduction.history[-2:]]
        message = (
            f"{name} stopped after max_iter={estimator.max_iter} outer iterations; the last lowered the objective by "
            f"{last[0] - last[-1]:.3g}. Raise max_iter or max_inner_iter, or tol={estimator.tol}."
        )
        warn_user(message, SolverConvergenceWarning)
    _warn_about_picture(estimator, has_signal=has_signal, n_known=n_known)

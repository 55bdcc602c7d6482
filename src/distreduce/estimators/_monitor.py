"""The monitor of a fit: progress bar, scikit-learn's callbacks and checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distreduce._utils.hashing import fingerprint
from distreduce._utils.versions import __version__
from distreduce.estimators._validate import require_seed
from distreduce.sharding.sample import Sample, ShardedSample
from distreduce.solver.checkpoint import Checkpoint, check_place
from distreduce.solver.loop import Monitor
from distreduce.solver.objective import Record
from distreduce.solver.sharded import LANDMARKS

if TYPE_CHECKING:
    from rich.progress import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: the same estimators without ``set_callbacks``

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn's mixin."""


# Parameters that do not change the result, and may differ between a fit and its resumption.
FREE = ("checkpoint", "n_jobs", "verbose")

__all__ = ["CallbackSupportMixin", "check_checkpoint", "open_checkpoint", "progress", "watch"]


@contextmanager
def watch(
    estimator: Any, X: Any, y: Any, sample_weight: Any, bar: Bar | None, checkpoint: Checkpoint | None
) -> Iterator[Monitor]:
    """Yield the monitor of a fit: it advances the bar, reports to scikit-learn's callbacks, keeps the checkpoint."""
    with _callbacks(estimator, X, y, sample_weight) as report:

        def callback(record: Record) -> object:
            if bar is not None:
                bar(record)
            return report(record)

        monitor = Monitor(callback, checkpoint)
        yield monitor if bar is None else replace(monitor, stage=bar.stage)


class Bar:
    """Advances with the outer iterations; before them it shows the stage of the preparation."""

    def __init__(self, bar: Progress, name: str, max_iter: int) -> None:
        self._bar, self._task = bar, bar.add_task(name, total=max_iter, state="samples …")

    def stage(self, name: str) -> None:
        """Show what is being computed."""
        self._bar.update(self._task, state=f"{name} …")

    def __call__(self, record: Record) -> None:
        state = f"objective {record.objective:.6g}" + ("" if isnan(record.cka) else f"  CKA {record.cka:.3f}")
        self._bar.update(self._task, completed=record.iteration, state=state)


@contextmanager
def progress(estimator: Any) -> Iterator[Bar | None]:
    """Show a bar on standard error while the block runs; None unless the estimator is verbose."""
    if not estimator.verbose:
        yield None
        return
    from rich.console import Console  # imported on first use: most fits are silent
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # On standard error: standard output belongs to the results of the program.
    with Progress(*columns, TextColumn("{task.fields[state]}"), console=Console(stderr=True)) as bar:
        yield Bar(bar, type(estimator).__name__, estimator.max_iter)
        bar.update(bar.task_ids[0], completed=estimator.max_iter)  # a fit that converged early is complete too


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


def check_checkpoint(estimator: Any, n: int, *, sharded: bool) -> str | None:
    """Check that the checkpoint can be written, and return the fingerprint of the parameters; None without one."""
    if estimator.checkpoint is None:
        return None
    require_seed(estimator)
    # Room for two files, since the new one is written beside the old: 20 bytes per sample, and arrays of size m.
    m = estimator.n_prototypes or n
    size = 20 * n + 8 * m * (m + estimator.n_components + (LANDMARKS if sharded else 0))
    check_place(Path(estimator.checkpoint), 2 * size + 2**16)
    given = {name: value for name, value in estimator.get_params(deep=False).items() if name not in FREE}
    return fingerprint(type(estimator).__name__, given)


def open_checkpoint(path: Any, parameters: str, sample: Sample | ShardedSample) -> Checkpoint:
    """Return the checkpoint of a fit to this sample: to its rows as the solver sees them, in that order."""
    return Checkpoint(Path(path), fingerprint(__version__, parameters, sample.weights, sample.fingerprints()))

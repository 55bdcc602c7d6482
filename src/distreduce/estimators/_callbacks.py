"""scikit-learn's callbacks, from 1.9 on: a task for the fit, and in it one for each outer iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distreduce.solver.loop import Record

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an older scikit-learn: the same estimators without ``set_callbacks``

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's."""


__all__ = ["CallbackSupportMixin", "told_callbacks"]


@contextmanager
def told_callbacks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Callable[[Record], object] | None]:
    """A function for the solver that tells the callbacks of the estimator of each outer iteration; None without any.

    To be left when the estimator is fitted. Until then callbacks get no fitted estimator, because the map is made at
    the end. The function answers True when a callback wishes to stop.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    try:
        # One more than outer iterations: the embedding of the initial plan.
        fit = estimator._init_callback_context(max_subtasks=estimator.max_iter + 1)
        fit.call_on_fit_task_begin(**given)
        task = fit.subcontext("outer iteration").call_on_fit_task_begin(**given)

        def advance(_: Record) -> bool:
            nonlocal task
            stop = task.call_on_fit_task_end(**given)
            task = fit.subcontext("outer iteration").call_on_fit_task_begin(**given)
            return bool(stop)

        yield advance
        task.call_on_fit_task_end(**given)
        fit.call_on_fit_task_end(**given, reconstruction_attributes={})
    finally:
        # The decorator's part is to tear down after a method. Around the fit itself it would be one frame between the
        # user's line and our warnings, which then point to the wrong place.
        with_callbacks(lambda _: None)(estimator)

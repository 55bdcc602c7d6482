"""The progress bar of verbose=1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isnan

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from distreduce.solver.loop import Record

Callback = Callable[[Record], object]


class Bar:
    """Moves with the outer iterations; before them it names what is computed."""

    def __init__(self, bar: Progress, name: str, max_iter: int) -> None:
        self._bar, self._task = bar, bar.add_task(name, total=max_iter, state="samples …")

    def stage(self, name: str) -> None:
        """What a fit has begun with."""
        self._bar.update(self._task, state=f"{name} …")

    def __call__(self, record: Record) -> None:
        state = f"objective {record.objective:.6g}" + ("" if isnan(record.cka) else f"  CKA {record.cka:.3f}")
        self._bar.update(self._task, completed=record.iteration, state=state)


@contextmanager
def progress(name: str, max_iter: int, verbose: int) -> Iterator[Bar | None]:
    """A bar on standard error, to be called by the solver; None if `verbose` is 0."""
    if not verbose:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[state]}"), console=Console(stderr=True)) as bar:
        told = Bar(bar, name, max_iter)
        yield told
        bar.update(bar.task_ids[0], completed=max_iter)


def both(first: Callback | None, second: Callback | None) -> Callback | None:
    """One callback for two; the answer, whether to stop, is that of the second."""
    if first is None or second is None:
        return first or second

    def call(record: Record) -> object:
        first(record)
        return second(record)

    return call

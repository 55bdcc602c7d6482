"""The progress bar of verbose=1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isnan

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from distreduce.solve import Record

Callback = Callable[[Record], object]


@contextmanager
def progress(name: str, max_iter: int, verbose: int) -> Iterator[Callback | None]:
    """A callback for the solver that moves a bar on standard error; None if `verbose` is 0."""
    if not verbose:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[state]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=max_iter, state="affinity …")

        def advance(record: Record) -> None:
            state = f"objective {record.objective:.6g}"
            bar.update(
                task, completed=record.iteration, state=state + ("" if isnan(record.cka) else f"  CKA {record.cka:.3f}")
            )

        yield advance
        bar.update(task, completed=max_iter)


def both(first: Callback | None, second: Callback | None) -> Callback | None:
    """One callback for two; the answer, whether to stop, is that of the second."""
    if first is None or second is None:
        return first or second

    def call(record: Record) -> object:
        first(record)
        return second(record)

    return call

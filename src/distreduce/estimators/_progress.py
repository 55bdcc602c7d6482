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
def progress(name: str, max_iter: int, verbose: int, also: Callback | None = None) -> Iterator[Callback | None]:
    """A callback for the solver that moves a bar on standard error and calls `also`; that alone if `verbose` is 0."""
    if not verbose:
        yield also
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[state]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=max_iter, state="affinity …")

        def advance(record: Record) -> object:
            state = f"objective {record.objective:.6g}"
            bar.update(
                task, completed=record.iteration, state=state + ("" if isnan(record.cka) else f"  CKA {record.cka:.3f}")
            )
            return None if also is None else also(record)

        yield advance
        bar.update(task, completed=max_iter)

"""Computes cells, in this process, in several, or on a Dask cluster, and hands every finished one to the store."""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from distreduce._utils.versions import machine
from distreduce.exceptions import InvalidInputError, MissingDependencyError
from distreduce_paper.cell import Cell
from distreduce_paper.measure import measured, versions
from distreduce_paper.plugins import Plugins, load_plugins
from distreduce_paper.record import Record
from distreduce_paper.store import Store


@dataclass(frozen=True)
class Outcome:
    """How many cells were asked for, were there already, were computed, and failed."""

    asked: int
    kept: int
    computed: int
    failed: int


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    dask: str | None = None,
    plugins: Plugins = (),
    retry: bool = False,
    report: Callable[[Record | None], object] = lambda record: None,
) -> Outcome:
    """Compute the cells that the store does not have, and keep each as soon as it is finished.

    Parameters
    ----------
    cells : sequence of Cell
    store : Store
        Cells with a result are never computed again; cells that failed only with `retry`.
    jobs : int
        Number of processes; they share the cores.
    dask : str, optional
        Address of a Dask scheduler to compute on instead.
    plugins : tuple of str
        Python files that register methods or data sets, loaded wherever a cell is computed.
    report : callable
        Called with None for every cell that is there already, and with every new record.
    """
    cells = list(dict.fromkeys(cells))
    with store.writing():
        names = {cell.experiment for cell in cells}
        done = set().union(*(store.finished(name, also_failed=not retry) for name in names))
        todo = [cell for cell in cells if cell.key not in done]
        for _ in range(len(cells) - len(todo)):
            report(None)
        failed = 0
        for record in _records(todo, jobs, dask, plugins):
            store.add(record)
            failed += "error" in record
            report(record)
    return Outcome(len(cells), len(cells) - len(todo), len(todo), failed)


def compute(cell: Cell, plugins: Plugins = ()) -> Record:
    """One cell's record: its result or its error, what it cost, and with which versions on which machine."""
    from distreduce_paper import experiment

    load_plugins(plugins)
    with measured() as cost:
        outcome: Record
        try:
            run = experiment(cell.experiment).run
            if run is None:
                raise InvalidInputError(f"The experiment {cell.experiment!r} has no cells of its own.")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # thousands of fits; what they say is in their scores
                outcome = {"result": _checked(run(cell))}
        except (Exception, SystemExit) as error:  # one failing cell must not stop the others; the report shows it
            outcome = {"error": _described(error)}
    return _record(cell, outcome, **asdict(cost))


def _checked(result: Any) -> dict[str, Any]:
    """The result if the store can hold it: otherwise that is the cell's error, and not that of the run."""
    if not isinstance(result, dict):
        raise InvalidInputError(f"A cell's result is a dict; this is of type {type(result).__name__}.")
    try:
        json.dumps(result)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"A cell's result is made of numbers, texts and lists of them: {error}.") from error
    return result


def _record(cell: Cell, outcome: Record, seconds: float, cpu_seconds: float, peak_mb: float) -> Record:
    cost = {"seconds": round(seconds, 4), "cpu_seconds": round(cpu_seconds, 4), "peak_mb": round(peak_mb, 1)}
    return {**cell.as_dict(), **outcome, **cost, "versions": versions(), "machine": machine()}


def _described(error: BaseException) -> dict[str, str]:
    """The error with its traceback, without the folders of this machine."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
    return {"type": type(error).__name__, "message": str(error), "traceback": "\n".join(lines)}


def _records(cells: Sequence[Cell], jobs: int, dask: str | None, plugins: Plugins) -> Iterator[Record]:
    if dask is not None:
        yield from _on_dask(cells, dask, plugins)
    elif jobs == 1:
        yield from (compute(cell, plugins) for cell in cells)
    else:
        yield from _in_processes(cells, jobs, plugins)


def _in_processes(cells: Sequence[Cell], jobs: int, plugins: Plugins) -> Iterator[Record]:
    """All cells in `jobs` processes. A process that dies takes its neighbours along: those are then run one by one."""
    left = {cell.key: cell for cell in cells}
    while left:
        try:
            for record in _pool(list(left.values()), jobs, plugins):
                del left[Cell.from_dict(record).key]
                yield record
        except TerminatedWorkerError:
            for cell in list(left.values())[: 2 * jobs]:  # as many as can have been under way
                yield _alone(cell, plugins)
                del left[cell.key]


def _pool(cells: Sequence[Cell], jobs: int, plugins: Plugins) -> Iterator[Record]:
    with warnings.catch_warnings(), parallel_config("loky", inner_max_num_threads=max(1, cpu_count() // jobs)):
        # joblib starts a process afresh when it has grown; that is no news to the user
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
        pool = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        yield from pool(delayed(compute)(cell, plugins) for cell in cells)


def _alone(cell: Cell, plugins: Plugins) -> Record:
    try:
        [record] = _pool([cell], 2, plugins)  # with one process joblib would use this one
        return record
    except TerminatedWorkerError as error:
        return _died(cell, error)


def _died(cell: Cell, error: Exception) -> Record:
    sentence = "The process that computed this cell was killed; most often it ran out of memory."
    outcome = {"error": {"type": type(error).__name__, "message": sentence, "traceback": ""}}
    return _record(cell, outcome, float("nan"), float("nan"), float("nan"))


def _on_dask(cells: Sequence[Cell], address: str, plugins: Plugins) -> Iterator[Record]:
    try:
        from dask.distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise MissingDependencyError(
            "--dask needs Dask's scheduler: pip install 'distreduce[large]', here and on the workers."
        ) from error
    try:
        client = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"--dask {address} cannot be reached ({error}); give what `dask scheduler` prints, such as tcp://host:8786."
        ) from error
    with client:
        futures: list[Any] = client.map(compute, cells, plugins=plugins, pure=False)
        cell_of = {future.key: cell for future, cell in zip(futures, cells, strict=True)}
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            try:
                record = future.result()
            except KilledWorker as error:
                record = _died(cell_of[future.key], error)
            yield record

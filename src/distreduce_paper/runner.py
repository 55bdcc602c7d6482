"""Computes cells in this process, in several processes or on a Dask cluster, and stores each result at once."""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from distreduce.exceptions import DownloadError, InvalidInputError, MissingDependencyError
from distreduce_paper.experiment import Cell
from distreduce_paper.measure import describe_machine, measure, package_versions
from distreduce_paper.plugins import Plugins, load_plugins
from distreduce_paper.store import CellResult, Store

WATCH_SECONDS = 1.0
OFFLINE_SECONDS = 600.0  # in which a data set that could not be fetched is not asked for again
STOPPED = (128 + 1, 128 + 15)  # how the command ends by SIGHUP and SIGTERM: the run is to stop, no cell has failed


_unreachable: dict[str, tuple[float, DownloadError]] = {}  # data sets, with the time and the error of the attempt


@dataclass(frozen=True)
class RunCounts:
    """Number of cells requested, already stored, computed, and failed among the computed ones."""

    requested: int
    stored: int
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
    on_result: Callable[[CellResult | None], object] = lambda result: None,
) -> RunCounts:
    """Compute the cells that are missing from the store, and store each as soon as it is finished.

    Cells with a result are never computed again, cells that failed only if `retry` is set. `jobs` processes share the
    cores; `dask` is the address of a scheduler to compute on instead. `plugins` are Python files that register methods
    or data sets; they are loaded wherever a cell is computed. `on_result` is called with None for each stored cell and
    with each new result.
    """
    cells = list(dict.fromkeys(cells))
    names = {cell.experiment for cell in cells}
    # Lock first and then read: another run may just have added results.
    with store.writing(*names):
        done = set().union(*(store.finished(name, also_failed=not retry) for name in names))
        missing = [cell for cell in cells if cell.key not in done]
        # Stored cells count as progress too.
        for _ in range(len(cells) - len(missing)):
            on_result(None)
        failed = 0
        for result in _compute_all(missing, jobs, dask, plugins):
            store.add(result)
            failed += "error" in result
            on_result(result)
    return RunCounts(len(cells), len(cells) - len(missing), len(missing), failed)


def compute_cell(cell: Cell, plugins: Plugins = ()) -> CellResult:
    """Compute one cell: its scores or its error, its cost, and the versions and the machine behind it."""
    from distreduce_paper import load_experiment

    # Outside of the `try`: a file that cannot be loaded concerns the run, not this cell.
    load_plugins(plugins)
    with measure() as cost:
        outcome: dict[str, Any]
        try:
            run = load_experiment(cell.experiment).run
            if run is None:
                raise InvalidInputError(f"The experiment {cell.experiment!r} has no cells of its own.")
            when, known = _unreachable.get(cell.data, (0.0, None))
            if known is not None and time.monotonic() - when < OFFLINE_SECONDS:
                raise known.with_traceback(None)  # every attempt takes seconds, and there may be a hundred cells
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # thousands of fits; their scores show what went wrong
                outcome = {"result": _check_scores(run(cell))}
        except (Exception, SystemExit) as error:  # one failing cell must not stop the others; the report shows it
            if isinstance(error, SystemExit) and error.code in STOPPED:
                raise
            if isinstance(error, DownloadError):
                _unreachable.setdefault(cell.data, (time.monotonic(), error))
            outcome = {"error": _describe(error)}
    return _make_result(cell, outcome, **asdict(cost))


def _check_scores(scores: Any) -> dict[str, Any]:
    """Raise if the store cannot hold the scores, so that this is an error of the cell and not of the run."""
    if not isinstance(scores, dict):
        raise InvalidInputError(f"The result of a cell must be a dict; got {type(scores).__name__}.")
    try:
        json.dumps(scores)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"The result of a cell holds numbers, strings and lists of them: {error}.") from error
    return scores


def _make_result(cell: Cell, outcome: dict[str, Any], seconds: float, cpu_seconds: float, peak_mb: float) -> CellResult:
    # Rounded: further digits are noise, and the files are in git.
    cost = {"seconds": round(seconds, 4), "cpu_seconds": round(cpu_seconds, 4), "peak_mb": round(peak_mb, 1)}
    return {**cell.as_dict(), **outcome, **cost, "versions": package_versions(), "machine": describe_machine()}


def _describe(error: BaseException) -> dict[str, str]:
    """Describe an error with its traceback, without the folders of this machine."""
    # Folders differ between machines and may name the user; files and lines are enough.
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
    return {"type": type(error).__name__, "message": str(error), "traceback": "\n".join(lines)}


def _compute_all(cells: Sequence[Cell], jobs: int, dask: str | None, plugins: Plugins) -> Iterator[CellResult]:
    if dask is not None:
        yield from _compute_on_dask(cells, dask, plugins)
    elif jobs == 1:
        yield from (compute_cell(cell, plugins) for cell in cells)
    else:
        yield from _compute_in_processes(cells, jobs, plugins)


def _compute_in_processes(cells: Sequence[Cell], jobs: int, plugins: Plugins) -> Iterator[CellResult]:
    """Compute in `jobs` processes. If one dies, the pool is lost, and the cells it was computing are run one by one."""
    # Each round computes what the last pool left, so one deadly cell cannot stop the rest.
    left = {cell.key: cell for cell in cells}
    while left:
        try:
            for result in _compute_in_pool(list(left.values()), jobs, plugins):
                del left[Cell.from_dict(result).key]
                yield result
        except TerminatedWorkerError:
            for cell in list(left.values())[: 2 * jobs]:  # as many as can have been running
                yield _compute_apart(cell, plugins)
                del left[cell.key]


def _compute_in_pool(cells: Sequence[Cell], jobs: int, plugins: Plugins) -> Iterator[CellResult]:
    with warnings.catch_warnings(), parallel_config("loky", inner_max_num_threads=max(1, cpu_count() // jobs)):
        # joblib replaces a worker whose memory has grown, and warns; the results are the same.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
        # One cell per task and none in advance: they take from a second to an hour, and a dead worker loses its own.
        pool = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        yield from pool(delayed(_compute_in_worker)(cell, plugins, os.getpid()) for cell in cells)


def _compute_apart(cell: Cell, plugins: Plugins) -> CellResult:
    try:
        [result] = _compute_in_pool([cell], 2, plugins)  # with one job, joblib would use this process
        return result
    except TerminatedWorkerError as error:
        return _make_killed(cell, error)


def _compute_in_worker(cell: Cell, plugins: Plugins, parent: int) -> CellResult:
    """Compute a cell in a process that ends when its parent does, however the parent ends."""
    if not any(thread.name == _exit_with_parent.__name__ for thread in threading.enumerate()):
        # Once per worker: the name of the thread tells whether it is there.
        threading.Thread(target=_exit_with_parent, name=_exit_with_parent.__name__, args=(parent,), daemon=True).start()
    return compute_cell(cell, plugins)


def _exit_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)  # no process is left to receive the result


def _make_killed(cell: Cell, error: Exception) -> CellResult:
    message = "The process that computed this cell was killed; most often it ran out of memory."
    outcome = {"error": {"type": type(error).__name__, "message": message, "traceback": ""}}
    return _make_result(cell, outcome, float("nan"), float("nan"), float("nan"))


def _compute_on_dask(cells: Sequence[Cell], address: str, plugins: Plugins) -> Iterator[CellResult]:
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
            f"--dask {address} cannot be reached ({error}); give the address that `dask scheduler` prints, such as "
            "tcp://host:8786."
        ) from error
    with client:
        # Not pure: the scheduler would answer an equal call with an earlier result, also in a retry.
        futures: list[Any] = client.map(compute_cell, cells, plugins=plugins, pure=False)
        # A killed worker returns nothing, so the cell must be found by its future.
        cell_of = {future.key: cell for future, cell in zip(futures, cells, strict=True)}
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            try:
                result = future.result()
            except KilledWorker as error:
                result = _make_killed(cell_of[future.key], error)
            yield result

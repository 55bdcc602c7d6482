"""The store of finished cells: one file of JSON lines per experiment, one line per cell; and cells as a frame.

Each line is written by a single call and flushed to disk, so a run killed at any point loses only the cells that it was
computing. A crash can leave an incomplete last line; the next run of that experiment removes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from distreduce._utils.files import exclusive
from distreduce.exceptions import StoreError
from distreduce_paper.experiment import Cell, Experiment

CellResult = dict[str, Any]  # the fields of a cell, its result or its error, its cost, versions and machine
COSTS = ("seconds", "cpu_seconds", "peak_mb")
# Columns that a table has for every cell. A parameter or a result of the same name would overwrite them.
COLUMNS = ("experiment", "data", "method", "seed", "quick", *COSTS, "machine")
MAX_BYTES = 2**28  # per file; all experiments of the paper together take three megabytes
MAX_DIGITS = 18  # larger integers do not fit into a column of int64


def parse_line(line: bytes) -> CellResult:
    """Parse one line of a file, which anybody may have written; ValueError says why it is not the result of a cell."""
    try:
        # Valid JSON may still be nested too deeply, or hold integers beyond int64.
        result = json.loads(line, parse_int=_parse_int)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    _require(isinstance(result, dict), "it is not a JSON object")
    # The fields that identify the cell.
    missing = sorted({*Cell.__dataclass_fields__} - {*result})
    _require(not missing, f"it lacks {missing}")
    _require(all(isinstance(result[name], str) for name in ("experiment", "data", "method")), "a name is not a string")
    _require(type(result["seed"]) is int and type(result["quick"]) is bool, "seed or quick has the wrong type")
    parameters = result["parameters"]
    _require(isinstance(parameters, dict), "its parameters are not an object")
    scalar = str | int | float | bool | None
    _require(all(isinstance(value, scalar) for value in parameters.values()), "a parameter is not a single value")
    # Its result.
    _require("result" in result or "error" in result, "it has neither a result nor an error")
    _require(isinstance(result.get("error", {}), dict), "its error is not an object")
    scores = {} if "error" in result else result["result"]
    _require(isinstance(scores, dict), "its result is not an object")
    # Names that would overwrite columns of the frame, and costs.
    reserved = sorted({*COLUMNS} & {*parameters, *scores})
    _require(not reserved, f"a parameter or a score has the reserved name {reserved}")
    costs = [result[name] for name in COSTS if name in result]
    _require(all(isinstance(cost, int | float) for cost in costs), "a cost is not a number")
    return result


def _parse_int(digits: str) -> int:
    _require(len(digits) <= MAX_DIGITS, f"it has the number {digits:.40}")
    return int(digits)


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


class Store:
    """The results in a folder. If a cell has several results, the last one counts."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def path(self, experiment: str) -> Path:
        """Return the file of an experiment, which is always inside the folder."""
        # The name may come from a file, so it must not lead out of the folder.
        name = f"{experiment}.jsonl"
        if Path(name).name != name or "\\" in name or "\0" in name:
            raise StoreError(f"{experiment!r:.100} cannot name a file; the name of an experiment has no slashes.")
        return self.folder / name

    def results(self, experiment: str) -> list[CellResult]:
        """Return the latest result of each cell, in the order in which the cells were first finished."""
        # A dict keeps the place of the first result and the value of the last.
        latest = {Cell.from_dict(result).key: result for result in self._read(experiment)}
        return list(latest.values())

    def finished(self, experiment: str, *, also_failed: bool = True) -> set[str]:
        """Return the keys of the cells with a result and, with `also_failed`, of those with an error of their own."""
        found = set()
        for one in self.results(experiment):
            # Data that could not be fetched say nothing about the cell: the network may be back.
            if "error" not in one or (also_failed and one["error"].get("type") != "DownloadError"):
                found.add(Cell.from_dict(one).key)
        return found

    def add(self, result: CellResult) -> None:
        """Append a result; after an error the file is as it was."""
        line = (json.dumps(result, sort_keys=True, allow_nan=True) + "\n").encode()
        path = self.path(result["experiment"])
        # O_APPEND and a single write: no other writer can end up within this line.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            _append(descriptor, line)
        except OSError as error:
            raise StoreError(f"Cannot add a result to {path}: {error}; run the same command again.") from error
        finally:
            os.close(descriptor)

    @contextmanager
    def writing(self, *experiments: str) -> Iterator[None]:
        """Lock the folder for one run that adds results of `experiments`; create it if needed.

        Only the files of these experiments are repaired. Every other file in the folder may belong to somebody else.
        Raises StoreError if another run holds the lock, or a file of these experiments has lines that are not results.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lock, advice = self.folder / ".lock", "wait until it ends, or choose another folder with --results."
        if lock.is_symlink():
            raise StoreError(f"Cannot open the lock file {lock}, which is a link; remove it and run again.")
        with exclusive(lock, StoreError(f"Another run is writing to {self.folder}; {advice}")):
            for experiment in experiments:
                self._repair(experiment)
            yield

    def _read(self, experiment: str) -> Iterator[CellResult]:
        path = self.path(experiment)
        if path.exists():
            yield from _parse_lines(path, _content(path).split(b"\n")[:-1])  # the last piece is empty or incomplete

    def _repair(self, experiment: str) -> None:
        """Complete or remove a last line without a newline, provided that this is a file of ours."""
        path = self.path(experiment)
        *lines, last = _content(path).split(b"\n") if path.exists() else [b""]
        if not last:
            return
        for _ in _parse_lines(path, lines):  # raises if any line is not a result
            pass
        # A torn line begins like ours and is not complete JSON; anything else is not ours to remove.
        torn = last[:2] in (b"{", b'{"') and not _is_json(last)
        if not torn:  # complete except for its newline, or not ours, which raises
            list(_parse_lines(path, [last], first=len(lines) + 1))
        with path.open("r+b") as file:
            if torn:
                file.truncate(path.stat().st_size - len(last))
            else:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")


def _parse_lines(path: Path, lines: list[bytes], first: int = 1) -> Iterator[CellResult]:
    for number, line in enumerate(lines, start=first):
        try:
            yield parse_line(line)
        except ValueError as error:
            raise StoreError(
                f"Line {number} of {path} is not the result of a cell ({error!s:.200}); delete that line, and its cell "
                "will be computed again."
            ) from error


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)  # one byte more shows that the file is too large
    except OSError as error:
        raise StoreError(f"Cannot read {path} ({error.strerror}); choose another folder with --results.") from error
    if len(content) > MAX_BYTES:
        raise StoreError(f"{path} has more than {MAX_BYTES} bytes; choose another folder with --results.")
    return content


def _append(descriptor: int, line: bytes) -> None:
    before = os.fstat(descriptor).st_size
    if os.write(descriptor, line) < len(line):  # a full disk accepts only a part
        os.ftruncate(descriptor, before)  # half a line would spoil the file
        raise OSError("the disk is full")
    os.fsync(descriptor)  # a result on disk survives a power failure


def load_frame(experiment: Experiment, store: Store) -> pd.DataFrame:
    """Return one row per successful cell that the experiment shows, in the order of its grid.

    The columns are experiment, data, method, seed, quick, the parameters of the cell, its scores (numbers, and lists
    for figures), seconds, cpu_seconds, peak_mb and machine.
    """
    rows = [_row(one) for one in load_results(experiment, store) if "error" not in one]
    return _sort(pd.DataFrame(rows), experiment) if rows else pd.DataFrame()


def load_results(experiment: Experiment, store: Store) -> list[CellResult]:
    """Return the results that the experiment shows: those of full runs, or of quick runs if there are no others."""
    sources = experiment.sources or (experiment.name,)
    results = {name: store.results(name) for name in sources}
    # An experiment with cells of its own shows a quick run if these are quick; borrowed cells follow.
    decisive = (experiment.name,) if experiment.run is not None else sources
    quick = all(one["quick"] for name in decisive for one in results[name])
    return [one for name in sources for one in results[name] if one["quick"] == quick]


def load_failures(experiment: Experiment, store: Store) -> list[CellResult]:
    """Return the results of the experiment's own cells that ended in an error."""
    results = load_results(experiment, store)
    return [one for one in results if "error" in one and one["experiment"] == experiment.name]


def _row(result: CellResult) -> dict[str, object]:
    # Files may come from other versions or machines, or have been edited.
    missing = [name for name in COLUMNS if name not in result]
    if missing:
        raise StoreError(
            f"A result of {result['experiment']!r:.100} lacks {missing[0]!r}; delete its line and run again."
        )
    return {**{name: result[name] for name in COLUMNS}, **result["parameters"], **result["result"]}


def _sort(frame: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    parameters = [name for name in experiment.grid if name in frame]
    # By the grid, not by the order of computing: the report must not depend on that.
    ranked = frame.assign(
        _data=_rank(experiment.datasets, frame["data"]), _method=_rank(experiment.methods, frame["method"])
    )
    try:
        ranked = ranked.sort_values(["experiment", "_data", "_method", *parameters, "seed"], kind="stable")
    except TypeError as error:  # strings among numbers
        raise StoreError(f"Cannot sort the parameters of {experiment.name!r} ({error}); run it again.") from error
    return ranked.drop(columns=["_data", "_method"]).reset_index(drop=True)


def _rank(own: Sequence[str], found: pd.Series) -> pd.Series:
    """Position of each name: first the experiment's own, then the others by alphabet."""
    # Methods and data sets of plugins come after the experiment's own.
    names = [*own, *sorted(set(found) - set(own))]
    return found.map({name: rank for rank, name in enumerate(names)})

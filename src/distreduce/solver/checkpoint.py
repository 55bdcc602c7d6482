"""Checkpoints: a file with the progress of the outer loop, from which a killed fit resumes to the same bits.

The file holds the coupling, the transported affinity, the prototypes, the history and everything else that the next
iteration depends on. It does not hold the affinity and the factorized map: they are larger, and computed again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from distreduce._utils import tensor_file
from distreduce._utils.tensor_file import Node, Reader, Writer, require
from distreduce._utils.text import warn_user
from distreduce._utils.typing import Array, Plan
from distreduce.exceptions import CheckpointError, CheckpointWarning, ModelSaveError
from distreduce.solver.loop import Progress
from distreduce.solver.objective import Record, State
from distreduce.solver.problem import Coupled

FORMAT, VERSION = "distreduce-checkpoint", [1, 0]
FLAGS = ("frozen", "converged", "finished")
# In the order of the fields, by which _read_history builds records.
COLUMNS = tuple(field.name for field in fields(Record))


class Checkpoint:
    """Reads and writes the file of one fit, which is identified by a fingerprint of data and parameters."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint
        self.raised: CheckpointWarning | None = None
        self._warned, self._written = False, -1

    def keep(self, at: Progress) -> None:
        """Write the file unless it holds this iteration already. If the disk fails, warn and let the fit continue."""
        # A finished fit is written again: its flags differ.
        if at.iteration == self._written and not at.finished:
            return
        write = Writer()
        document = {"format": FORMAT, "version": VERSION, "fingerprint": self.fingerprint}
        try:
            state = _write_progress(at, write)
            tensor_file.write_file(self.path, {**document, "state": state}, write.tensors, mark=mark(self.path))
            self._written = at.iteration
        except ModelSaveError as error:
            self._warn(f"The checkpoint {os.fspath(self.path)!r} was not written: {error.__cause__}. The fit goes on.")

    def _warn(self, message: str) -> None:
        """Warn once. If a filter turns the warning into an error, keep it until the fit is finished."""
        if self._warned:
            return
        self._warned = True
        try:
            warn_user(message, CheckpointWarning)
        except CheckpointWarning as raised:
            self.raised = raised

    def read(self, start: Plan, shape: tuple[int, ...]) -> Progress | None:
        """Return the progress of the fit with initial coupling `start` and prototypes of this shape; None if new."""
        if not os.path.lexists(self.path):
            return None
        try:
            with tensor_file.open_file(self.path) as (document, handle):
                _check_format(document)  # before the fingerprint: a file of another kind gets its own message
                same = document.get("fingerprint") == self.fingerprint
                require(same, "it belongs to a fit to other data, with other parameters, or of another version")
                read = Reader(tensor_file.read_tensors(handle, document))
            at = _read_progress(document.get("state"), read, start, shape)
            require(not read.unused(), "it holds tensors that nothing refers to")
        except tensor_file.UNREADABLE as error:
            raise _cannot_resume(self.path, error) from error
        self._written = at.iteration  # the loop need not write the same file again
        return at


def check_kind(path: Path) -> None:
    """Raise CheckpointError, before any work, if the file exists and is not a checkpoint."""
    if not os.path.lexists(path):
        return
    try:
        with tensor_file.open_file(path) as (document, _):
            _check_format(document)
    except tensor_file.UNREADABLE as error:
        raise _cannot_resume(path, error) from error


def check_place(path: Path, n_bytes: int) -> None:
    """Raise CheckpointError, before any work, if a file of about this size could not be written.

    Unfinished files that a killed fit left there are removed.
    """
    folder = Path(os.path.realpath(path)).parent  # of the file itself, if the path is a link to it
    try:
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            raise PermissionError("it exists, but is not a file that may be replaced")
        # Only a killed fit leaves such files, and no other checkpoint has this mark.
        for left in folder.glob(f".{mark(path)}-*.tmp"):
            left.unlink(missing_ok=True)
        # Writing a file is a surer test than permissions.
        trial = folder / f".{mark(path)}-trial.tmp"
        trial.write_bytes(b"")
        trial.unlink()
        free = shutil.disk_usage(folder).free
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint={os.fspath(path)!r} cannot be written: {error}. Name a file in a folder that exists and is "
            "writable."
        ) from error
    if free < n_bytes:
        raise CheckpointError(
            f"checkpoint={os.fspath(path)!r} needs about {n_bytes / 1e6:.0f} MB, and its disk has {free / 1e6:.0f} MB "
            "left; free some, or name a file on another disk."
        )


def mark(path: Path) -> str:
    """Return the prefix of the names of this checkpoint's unfinished files; no other checkpoint shares it."""
    return f"distreduce-{sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]}"


def _check_format(document: Mapping[str, Any]) -> None:
    require(document.get("format") == FORMAT, "it is not a checkpoint")
    require(document.get("version") == VERSION, "its version is unknown")


def _cannot_resume(path: Path, error: BaseException) -> CheckpointError:
    return CheckpointError(f"Cannot resume from {os.fspath(path)!r}: {str(error)[:500]}. {CheckpointError.advice}")


# Progress as JSON and tensors.
def _write_progress(at: Progress, write: Writer) -> Node:
    state, history = at.state, write.within("history")
    columns = {name: [getattr(record, name) for record in at.history] for name in COLUMNS}
    return {
        "iteration": at.iteration,
        **{name: getattr(at, name) for name in FLAGS},
        "settled": state.settled,
        "faults": list(at.faults),
        "plan": write.sparse("plan", state.coupled.plan),
        "transported": write.array("transported", state.coupled.transported),
        "prototypes": write.array("prototypes", state.prototypes),
        "history": {name: history.array(name, np.asarray(column)) for name, column in columns.items()},
    }


# And back, with every value checked: a file may be damaged or forged.
def _read_progress(state: Node, read: Reader, start: Plan, shape: tuple[int, ...]) -> Progress:
    """Return the progress if it can belong to a fit with the row sums of `start` and prototypes of this shape."""
    # Flags and counters; type() and not isinstance(), for which True is an integer.
    flags = {name: read.part(state, name) for name in (*FLAGS, "settled")}
    require(all(type(flag) is bool for flag in flags.values()), "its flags are invalid")
    iteration, faults = read.part(state, "iteration"), read.part(state, "faults")
    require(type(iteration) is int and 0 <= iteration < 2**31, "its iteration is invalid")
    require(isinstance(faults, list) and all(isinstance(fault, str) for fault in faults), "its faults are not strings")
    # Arrays, which must have the shapes of this fit.
    plan, m = _read_plan(read, state, start), start.shape[1]
    coupled = Coupled(plan, _read_table(read, "transported", state, (m, m)))
    prototypes = _read_table(read, "prototypes", state, shape)
    history = _read_history(read.part(state, "history"), read.within("history"))
    found = State(coupled, prototypes, history[-1], flags.pop("settled"))
    return Progress(found, history, iteration, faults=tuple(faults), **flags)


def _read_plan(read: Reader, node: Node, start: Plan) -> Plan:
    """Return a plan with the row sums of `start`."""
    plan = read.sparse("plan", read.part(node, "plan"))
    # Each row carries the weight of its sample, whatever the coupling.
    good = plan.shape == start.shape and plan.dtype == np.float64 and bool((plan.data >= 0).all())
    require(
        good and np.allclose(plan.sum(axis=1), start.sum(axis=1), rtol=1e-6, atol=0.0),
        "its plan does not belong to this fit",
    )
    return plan


def _read_table(read: Reader, name: str, node: Node, shape: tuple[int, ...]) -> Array:
    """Return a finite array of this shape."""
    table = read.array(name, read.part(node, name))
    good = table.shape == shape and table.dtype == np.float64 and bool(np.isfinite(table).all())
    require(good, f"its {name} does not belong to this fit")
    return table


def _read_history(node: Node, read: Reader) -> tuple[Record, ...]:
    require(isinstance(node, dict) and sorted(node) == sorted(COLUMNS), "its history is invalid")
    columns = {name: read.array(name, node[name]) for name in COLUMNS}
    lengths = {column.shape for column in columns.values()}
    require(len(lengths) == 1 and len(next(iter(lengths))) == 1 and lengths != {(0,)}, "its history is invalid")
    kinds = {name: "i" if name in ("iteration", "n_evaluations") else "f" for name in COLUMNS}
    require(all(columns[name].dtype.kind == kind for name, kind in kinds.items()), "its history is invalid")
    # Without targets there is no CKA.
    finite = all(np.isfinite(column).all() for name, column in columns.items() if name != "cka")
    require(finite, "its history has NaN or infinite values")
    return tuple(Record(*row) for row in zip(*(column.tolist() for column in columns.values()), strict=True))

"""A fit in a file, after every outer iteration: killed, it goes on from there and ends with the same bits.

The file has the plan, what it transports, the embedding, the history and what else the next iteration depends on, but
not the affinity and the factorised map: they are larger than all the rest, and computed again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from scipy import sparse

from distreduce._utils.tensor_file import MAX_BYTES, UNREADABLE, open_file, read_tensors, write_file
from distreduce._utils.tensor_reader import Reader, require
from distreduce._utils.tensor_writer import Writer
from distreduce._utils.warnings import warn_user
from distreduce.exceptions import CheckpointError, CheckpointWarning, ModelSaveError
from distreduce.solver.checkpoint_state import from_state, to_state
from distreduce.solver.loop import Progress

FORMAT, VERSION = "distreduce-checkpoint", [1, 0]
ADVICE = "Delete it to start afresh, or give another path as checkpoint."


class Checkpoint:
    """Reads and writes the file of one fit, which is known by its fingerprint."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path, self.fingerprint = path, fingerprint
        self.raised: CheckpointWarning | None = None
        self._told, self._written = False, -1

    def keep(self, at: Progress) -> None:
        """Write the file unless it holds this iteration already; a disk that fails costs the file, never the fit."""
        if at.iteration == self._written and not at.finished:
            return
        write = Writer()
        document = {"format": FORMAT, "version": VERSION, "fingerprint": self.fingerprint}
        try:
            state = to_state(at, write)
            write_file(self.path, {**document, "state": state}, write.tensors, mark=mark(self.path))
            self._written = at.iteration
        except ModelSaveError as error:
            self._tell(f"The checkpoint {os.fspath(self.path)!r} was not written: {error.__cause__}. The fit goes on.")

    def _tell(self, message: str) -> None:
        """Once, and at once; where a filter makes an error of it, the fit is finished before it is raised."""
        if self._told:
            return
        self._told = True
        try:
            warn_user(message, CheckpointWarning)
        except CheckpointWarning as raised:
            self.raised = raised

    def read(self, start: sparse.csr_array, embedding: tuple[int, int]) -> Progress | None:
        """Where the fit was that began with the plan `start`, its embedding of this shape; None without a file."""
        if not os.path.lexists(self.path):
            return None
        try:
            with open_file(self.path, MAX_BYTES) as (document, handle):
                _check_kind(document)
                same = document.get("fingerprint") == self.fingerprint
                require(same, "it belongs to a fit to other data, with other parameters, or of another version")
                read = Reader(read_tensors(handle, document))
            at = from_state(document.get("state"), read, start, embedding)
            require(not read.unused(), "it holds tensors that belong to nothing")
        except UNREADABLE as error:
            raise _refused(self.path, error) from error
        self._written = at.iteration
        return at


def check_kind(path: Path) -> None:
    """Refuse, before any work, a file that is no checkpoint; whether it is of the same fit is told when that begins."""
    if not os.path.lexists(path):
        return
    try:
        with open_file(path, MAX_BYTES) as (document, _):
            _check_kind(document)
    except UNREADABLE as error:
        raise _refused(path, error) from error


def _check_kind(document: Mapping[str, Any]) -> None:
    require(document.get("format") == FORMAT, "it is no checkpoint")
    require(document.get("version") == VERSION, "its version is not known")


def _refused(path: Path, error: BaseException) -> CheckpointError:
    return CheckpointError(f"{os.fspath(path)!r} cannot be gone on from: {str(error)[:500]}. {ADVICE}")


def mark(path: Path) -> str:
    """What the names of unfinished files of this checkpoint, and of no other, begin with."""
    return f"distreduce-{sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]}"


def check_place(path: Path, n_bytes: int) -> None:
    """Refuse, before any work, a place where a file of about so many bytes could not be written.

    What a killed fit left unfinished there is removed.
    """
    folder = Path(os.path.realpath(path)).parent
    try:
        if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
            raise PermissionError("there is something there that is no file that may be replaced")
        for left in folder.glob(f".{mark(path)}-*.tmp"):
            left.unlink(missing_ok=True)
        trial = folder / f".{mark(path)}-trial.tmp"
        trial.write_bytes(b"")
        trial.unlink()
        free = shutil.disk_usage(folder).free
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint={os.fspath(path)!r} cannot be written: {error}. Name a file in a folder that exists and that "
            "may be written to."
        ) from error
    if free < n_bytes:
        raise CheckpointError(
            f"checkpoint={os.fspath(path)!r} needs about {n_bytes / 1e6:.0f} MB, and its disk has {free / 1e6:.0f} MB "
            "left; free some, or name a file on another disk."
        )

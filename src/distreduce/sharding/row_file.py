"""Rows of features in a temporary file, for data that does not fit into memory: they are read block by block."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError


def no_room(limit: str, error: OSError) -> InvalidInputError:
    """The error when a temporary file cannot grow `limit` ("to 100 bytes")."""
    return InvalidInputError(
        f"The temporary file for the rows of X could not grow {limit} ({error}); "
        "free space, or set TMPDIR to a folder that has it."
    )


class RowFile:
    """A temporary file of rows of equal length; it is deleted when nothing refers to it any more."""

    def __init__(self, n_features: int, dtype: Any, folder: str | Path | None = None) -> None:
        self.n_features, self.dtype = n_features, np.dtype(dtype)
        self._file = tempfile.TemporaryFile(prefix="distreduce-", dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)  # closing deletes it

    @property
    def row_bytes(self) -> int:
        return self.n_features * self.dtype.itemsize

    def write(self, numbers: NDArray[np.intp], rows: Array) -> None:
        """Write rows under the given row numbers, in any order."""
        order = np.argsort(numbers, kind="stable")
        numbers, rows = numbers[order], np.ascontiguousarray(rows[order], dtype=self.dtype)
        # Consecutive numbers are written in one call.
        for run in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(numbers) != 1) + 1):
            if len(run):
                self._write_run(int(numbers[run[0]]), rows[run[0] : run[-1] + 1])

    def _write_run(self, first: int, rows: Array) -> None:
        view, offset, done = rows.data.cast("B"), first * self.row_bytes, 0
        try:
            while done < len(view):  # one call writes 2 GB at most
                done += os.pwrite(self._file.fileno(), view[done:], offset + done)
        except OSError as error:
            raise no_room(f"to {offset + len(view)} bytes", error) from error

    def read(self, first: int, count: int) -> Array:
        """Consecutive rows, in memory."""
        out = np.empty((count, self.n_features), dtype=self.dtype)
        if count == 0:
            return out
        view, offset, done = out.data.cast("B"), first * self.row_bytes, 0
        while done < len(view):  # one call reads 2 GB at most
            got = os.preadv(self._file.fileno(), [view[done:]], offset + done)
            if got == 0:
                raise InvalidInputError("The temporary file for the rows of X ended early; nothing else may touch it.")
            done += got
        return out


class StoredRows:
    """Consecutive rows of a :class:`RowFile`, with the part of an array's interface that shards need."""

    def __init__(self, file: RowFile, start: int, stop: int) -> None:
        self._file, self._start, self._stop = file, start, stop

    @property
    def shape(self) -> tuple[int, int]:
        return self._stop - self._start, self._file.n_features

    @property
    def dtype(self) -> Any:
        return self._file.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        """The rows of a slice of step one, or of an array of row numbers or booleans, in memory."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._file.read(self._start + start, max(0, stop - start))
        wanted = np.arange(len(self))[rows]  # NumPy resolves masks and negative numbers
        out = np.empty((len(wanted), self.shape[1]), dtype=self.dtype)
        order = np.argsort(wanted, kind="stable")
        # Consecutive rows, and repeated ones, are read in one call.
        for run in np.split(order, np.flatnonzero(np.diff(wanted[order]) > 1) + 1) if len(order) else ():
            first, last = wanted[run[0]], wanted[run[-1]]
            block = self._file.read(self._start + int(first), int(last - first) + 1)
            out[run] = block[wanted[run] - first]
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """All of the rows, in memory."""
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

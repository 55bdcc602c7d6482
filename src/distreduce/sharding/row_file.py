"""Rows of features in a temporary file, for data that does not fit into memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError


def no_room(limit: str, error: OSError) -> InvalidInputError:
    """The error when a temporary file cannot grow `limit` ("to 100 bytes")."""
    return InvalidInputError(
        f"The temporary file for the rows of X could not grow {limit} ({error}); "
        "free space, or set TMPDIR to a folder that has it."
    )


def array_in_file(shape: tuple[int, int], dtype: Any, folder: str | Path | None = None) -> Array:
    """An array in a temporary file that is mapped into memory: the system keeps as much of it there as fits.

    The file has no name, and is gone when nothing refers to the array any more.
    """
    size = max(1, shape[0] * shape[1] * np.dtype(dtype).itemsize)
    with tempfile.TemporaryFile(prefix="distreduce-", dir=folder) as file:
        try:
            # Before it is mapped: writing to a mapped page for which the disk has no room ends the process.
            _reserve(file.fileno(), size)
        except OSError as error:
            raise no_room(f"to {size} bytes", error) from error
        return np.asarray(np.memmap(file, dtype, mode="r+", shape=shape))


def _reserve(descriptor: int, size: int) -> None:
    """Make a file `size` bytes long, all of which the disk has room for."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    for start in range(0, size, 2**24):  # macOS and Windows: only what is written takes its room
        os.write(descriptor, bytes(min(2**24, size - start)))

"""A data set that lives in a file: where it comes from, how it is verified, read and written, what its columns mean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from distreduce._utils.atomic import replacing
from distreduce._utils.safe_npz import DAMAGE, Arrays, read_arrays
from distreduce.datasets.dataset import Dataset
from distreduce.estimators._targets import Task
from distreduce.exceptions import DatasetFileError

MAX_UNPACKED = 64 * 2**20  # bytes of an NPZ file in memory: the largest set has 24 MB


@dataclass(frozen=True)
class RemoteFile:
    """A file of a public origin; all `urls` hold the same bytes."""

    name: str
    size: int  # bytes; much larger downloads are rejected
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class FileSet:
    """A data set that lives in a file."""

    name: str
    file: str  # its name in the folder DISTREDUCE_DATA and in the cache
    sha256: str  # hash_values of its arrays, whatever file they came in
    arrays: tuple[str, ...]  # columns of a CSV file, targets last; or arrays of an NPZ file, features first
    shape: tuple[int, int]
    task: Task
    target_names: tuple[str, ...]
    remote: tuple[RemoteFile, ...]
    parse: Callable[[dict[str, bytes]], Arrays]  # turns the contents of `remote`, by name, into our arrays
    description: str
    licence: str
    citation: str
    class_names: tuple[str, ...] | None = None
    image_shape: tuple[int, int] | None = None

    @property
    def download_size(self) -> int:
        """Bytes to download."""
        return sum(remote.size for remote in self.remote)

    def find_fault(self, arrays: Arrays) -> str:
        """Return what is wrong with the values; an empty string if they are those of this set."""
        found = hash_values(arrays)
        if found == self.sha256:  # of the values, not of the file: a repacked copy is accepted (decision 14)
            return ""
        return f"its values are not those of {self.name!r} (sha256 {found[:12]}… instead of {self.sha256[:12]}…)"

    def dataset(self, arrays: Arrays) -> Dataset:
        """Return the data set of these arrays."""
        if "table" in arrays:
            # A CSV file: one table, targets last. Copies are contiguous and share no memory.
            d, names = self.shape[1], self.arrays[: self.shape[1]]
            X, y = arrays["table"][:, :d].copy(), arrays["table"][:, d:].copy()
            y = y[:, 0] if y.shape[1] == 1 else y
        else:
            # An NPZ file: features of any shape and type, and integer labels.
            X = arrays[self.arrays[0]].reshape(self.shape).astype(np.float64, order="C")
            y = arrays["labels"].astype(np.int64)
            stem = "pixel" if self.image_shape else self.arrays[0]
            names = tuple(f"{stem}_{column}" for column in range(self.shape[1]))
        return Dataset(
            self.name, X, y, self.task, names, self.target_names, self.class_names, self.image_shape,
            self.description, self.licence, self.citation,
        )  # fmt: skip


def hash_values(arrays: Arrays) -> str:
    """Return the sha256 over names, shapes, dtypes and little-endian bytes: container and compression do not matter."""
    digest = hashlib.sha256()
    for name in sorted(arrays):  # the order in the file does not matter
        plain = np.ascontiguousarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"))
        digest.update(f"{name} {plain.dtype.str} {plain.shape}\n".encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()


def read_file(path: Path, names: Sequence[str]) -> Arrays:
    """Return the arrays of these names (NPZ), or one array ``table`` with these columns (CSV)."""
    try:
        if path.suffix != ".csv":  # NPZ
            return read_arrays(path, names, MAX_UNPACKED)
        # Our own format needs no guessing, unlike people's files.
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        if header.split(",") != list(names):
            raise ValueError(f"its columns are not {', '.join(names)}")
        return {"table": np.array([line.split(",") for line in lines], dtype=np.float64)}
    except DAMAGE as error:
        raise DatasetFileError(f"{path} cannot be read ({type(error).__name__}: {error}).") from error


def write_file(path: Path, arrays: Arrays, names: Sequence[str]) -> None:
    """Write a file that :func:`read_file` reads, atomically: a reader never sees half of it."""
    with replacing(path) as hidden, hidden.open("xb") as stream:
        _write(stream, arrays, names)


def _write(stream: IO[bytes], arrays: Arrays, names: Sequence[str]) -> None:
    if "table" not in arrays:
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]  # the stubs take a name for allow_pickle
        return
    rows = [",".join(names), *(",".join(map(repr, row)) for row in arrays["table"].tolist())]
    stream.write(("\n".join(rows) + "\n").encode())  # repr is the shortest text that reads back to the same number

"""What is known of a set that lives in a file: where it comes from, how it is told, what its columns mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from distreduce._utils.safe_npz import Arrays
from distreduce.datasets.bundle import Dataset, Task
from distreduce.datasets.storage import fingerprint


@dataclass(frozen=True)
class RemoteFile:
    """A file of a public origin; each of `urls` holds the same bytes."""

    name: str
    size: int  # bytes; what is much larger is refused
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class FileSet:
    """A data set that lives in a file.

    Attributes
    ----------
    file : str
        Its name in the folder DISTREDUCE_DATA and in the cache.
    sha256 : str
        :func:`~distreduce.datasets.storage.fingerprint` of the values, whatever file they came in.
    arrays : tuple of str
        Columns of a CSV, the targets last; or arrays of an NPZ, the features first.
    parse : callable
        Turns the contents of `remote`, by name, into our arrays.
    """

    name: str
    file: str
    sha256: str
    arrays: tuple[str, ...]
    shape: tuple[int, int]
    task: Task
    target_names: tuple[str, ...]
    remote: tuple[RemoteFile, ...]
    parse: Callable[[dict[str, bytes]], Arrays]
    description: str
    licence: str
    citation: str
    class_names: tuple[str, ...] | None = None
    image_shape: tuple[int, int] | None = None

    @property
    def download_size(self) -> int:
        """Bytes to fetch."""
        return sum(remote.size for remote in self.remote)

    def fault(self, arrays: Arrays) -> str:
        """What is wrong with the values; an empty string if they are those of this set."""
        found = fingerprint(arrays)
        if found == self.sha256:
            return ""
        return f"its values are not those of {self.name!r} (sha256 {found[:12]}… instead of {self.sha256[:12]}…)"

    def dataset(self, arrays: Arrays) -> Dataset:
        """The bundle of these arrays."""
        if "table" in arrays:
            d, names = self.shape[1], self.arrays[: self.shape[1]]
            X, y = arrays["table"][:, :d].copy(), arrays["table"][:, d:].copy()
            y = y[:, 0] if y.shape[1] == 1 else y
        else:
            X = arrays[self.arrays[0]].reshape(self.shape).astype(np.float64, order="C")
            y = arrays["labels"].astype(np.int64)
            stem = "pixel" if self.image_shape else self.arrays[0]
            names = tuple(f"{stem}_{column}" for column in range(self.shape[1]))
        return Dataset(
            self.name, X, y, self.task, names, self.target_names, self.class_names, self.image_shape,
            self.description, self.licence, self.citation,
        )  # fmt: skip

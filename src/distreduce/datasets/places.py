"""Where files are searched: the folder DISTREDUCE_DATA, then the user's cache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from distreduce._utils.safe_npz import Arrays
from distreduce.datasets.file_set import FileSet, read_file
from distreduce.exceptions import DatasetFileError

FOLDER_VARIABLE, CACHE_VARIABLE = "DISTREDUCE_DATA", "DISTREDUCE_CACHE"


@dataclass(frozen=True)
class Copy:
    """The file of a set, in one of the two places."""

    place: Literal["folder", "cache"]
    path: Path

    def read(self, spec: FileSet) -> Arrays:
        """Return its arrays; if its values are not those published, raise DatasetFileError and leave the file alone."""
        try:
            arrays = read_file(self.path, spec.arrays)
        except DatasetFileError as error:
            raise DatasetFileError(f"{error} {self._advice()}") from error
        fault = spec.find_fault(arrays)
        if fault:
            raise DatasetFileError(f"{self.path} is damaged or another version: {fault}. {self._advice()}")
        return arrays

    def _advice(self) -> str:
        if self.place == "cache":
            return "Delete it; the next load fetches it again."
        return f"Replace or delete it; without it the cache is used, then the public origin ({FOLDER_VARIABLE} is set)."


def data_folder() -> Path | None:
    """Return the folder DISTREDUCE_DATA; None if the variable is not set."""
    value = os.environ.get(FOLDER_VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser()
    # An error, not the cache: a mistyped variable would otherwise start a download.
    if not folder.is_dir():
        raise DatasetFileError(f"{FOLDER_VARIABLE}={value} is not a folder; correct it or unset it.")
    return folder


def cache_folder() -> Path:
    """Return the folder DISTREDUCE_CACHE, or the user's cache; it need not exist."""
    value = os.environ.get(CACHE_VARIABLE)
    if value:
        return Path(value).expanduser().absolute()  # a later chdir must not move the cache
    import pooch

    return Path(pooch.os_cache("distreduce"))


def copies(spec: FileSet) -> list[Copy]:
    """Return the local files of a set, the one to use first."""
    folder = data_folder()
    found = [] if folder is None else [Copy("folder", folder / spec.file)]
    found.append(Copy("cache", cache_folder() / spec.file))
    return [copy for copy in found if copy.path.is_file()]

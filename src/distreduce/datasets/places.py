"""Where files are looked for: the folder DISTREDUCE_DATA, then the user's cache."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from distreduce._utils.safe_npz import Arrays
from distreduce.datasets.spec import FileSet
from distreduce.datasets.storage import read_file
from distreduce.exceptions import DatasetFileError

FOLDER_VARIABLE, CACHE_VARIABLE = "DISTREDUCE_DATA", "DISTREDUCE_CACHE"


@dataclass(frozen=True)
class Copy:
    """The file of a set, in one of the two places."""

    place: Literal["folder", "cache"]
    path: Path

    def read(self, spec: FileSet) -> Arrays:
        """Its arrays; a file with other values than those published is refused, and left as it is."""
        try:
            arrays = read_file(self.path, spec.arrays)
        except DatasetFileError as error:
            raise DatasetFileError(f"{error} {self._advice()}") from error
        fault = spec.fault(arrays)
        if fault:
            raise DatasetFileError(f"{self.path} is damaged or another version: {fault}. {self._advice()}")
        return arrays

    def _advice(self) -> str:
        if self.place == "cache":
            return "Delete it; the next load fetches it again."
        return (
            f"Replace or delete it; without it the cache is asked, then the public origin ({FOLDER_VARIABLE} is set)."
        )


def data_folder() -> Path | None:
    """The folder of the variable DISTREDUCE_DATA, None when it is not set."""
    value = os.environ.get(FOLDER_VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise DatasetFileError(f"{FOLDER_VARIABLE}={value} is no folder; correct it or unset it.")
    return folder


def cache_folder() -> Path:
    """The user's cache, or the folder of the variable DISTREDUCE_CACHE; it need not exist yet."""
    value = os.environ.get(CACHE_VARIABLE)
    if value:
        return Path(value).expanduser().absolute()
    import pooch

    return Path(pooch.os_cache("distreduce"))


def copies(spec: FileSet) -> list[Copy]:
    """The files of a set that are here, the one to use first."""
    folder = data_folder()
    found = [] if folder is None else [Copy("folder", folder / spec.file)]
    found.append(Copy("cache", cache_folder() / spec.file))
    return [copy for copy in found if copy.path.is_file()]

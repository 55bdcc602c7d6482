"""The entry point: from a name or a path to a :class:`Dataset`."""

from __future__ import annotations

import numbers
import os
from pathlib import Path
from typing import Any

from distreduce._utils.text import did_you_mean
from distreduce.datasets.dataset import Dataset
from distreduce.datasets.download import download_set
from distreduce.datasets.file_set import FileSet
from distreduce.datasets.own_files import load_own_file
from distreduce.datasets.places import FOLDER_VARIABLE, cache_folder, copies
from distreduce.datasets.registry import BUNDLED_SETS, FILE_SETS, GENERATED_SETS
from distreduce.exceptions import DatasetFileError, InvalidInputError, InvalidTypeError
from distreduce.tables.formats import SUFFIXES


def names() -> list[str]:
    """Return the names that :func:`load` knows: the files of the paper, its generators, the sets of scikit-learn."""
    return [*FILE_SETS, *GENERATED_SETS, *BUNDLED_SETS]


def load(
    name_or_path: str | os.PathLike[str],
    *,
    n_samples: int | None = None,
    random_state: int | None = None,
    target: str | list[str] | None = None,
    download: bool = True,
) -> Dataset:
    """Load a data set by name, or a file of your own.

    Parameters
    ----------
    name_or_path : str or path
        One of :func:`names`, or a file that ends in .csv, .tsv, .parquet, .npz or .h5ad.
    n_samples : int, optional
        Rows drawn without replacement by ``numpy.random.default_rng(random_state)``; all rows in their order by
        default. A generator draws that many points instead (100, 100 and 500 by default, as in the paper).
    random_state : int, optional
        Seed of the draw or of the generator.
    target : str or list of str, optional
        Column or columns to predict. By default the last column of your own file, the array ``y`` or ``labels`` of an
        NPZ file; for h5ad, name a column of ``obs``.
    download : bool
        Whether to download a set that is neither in the folder DISTREDUCE_DATA nor in the cache.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetFileError
        A file is missing, damaged, or has other values than those published.
    DownloadError
        The origin cannot be reached or sends something else.
    InvalidInputError
        There is no such name, target or number of samples, or a file cannot be used.

    Examples
    --------
    >>> from distreduce import datasets
    >>> roll = datasets.load("swiss_roll", n_samples=50, random_state=0)
    >>> roll.X.shape, roll.y.shape
    ((50, 3), (50,))
    """
    n_samples = _count("n_samples", n_samples, least=1)
    random_state = _count("random_state", random_state, least=0)
    name = str(name_or_path)
    if name in GENERATED_SETS:  # n_samples is drawn by the generator, not from a finished set
        dataset = GENERATED_SETS[name].load(n_samples, random_state)
    else:
        dataset = _load_all_rows(name_or_path, target, download)
        dataset = dataset if n_samples is None else dataset.draw(n_samples, random_state)
    # load_own_file has chosen the targets of a user's file already.
    if target is None or name not in names():
        return dataset
    return dataset.with_targets([target] if isinstance(target, str) else list(target))


def _load_all_rows(name_or_path: str | os.PathLike[str], target: str | list[str] | None, download: bool) -> Dataset:
    name = str(name_or_path)
    if name in FILE_SETS:
        return _from_file(FILE_SETS[name], download)
    if name in BUNDLED_SETS:
        return BUNDLED_SETS[name].load()
    path = Path(name_or_path)
    # A bare word without a suffix is a misspelt name rather than a path.
    if isinstance(name_or_path, str) and not path.suffix and path.name == name and not path.exists():
        raise unknown_name(name)
    return load_own_file(path, target)


def _from_file(spec: FileSet, download: bool) -> Dataset:
    here = copies(spec)
    if here:
        return spec.dataset(here[0].read(spec))
    if not download:
        raise DatasetFileError(
            f"{spec.name!r} is not on this machine: there is no {spec.file} in {cache_folder()}, nor in a folder "
            f"{FOLDER_VARIABLE}. Allow the download, or run `distreduce data fetch {spec.name}`."
        )
    return spec.dataset(download_set(spec))


def fetch(name: str, *, progress: bool = True) -> Path:
    """Download the file of a set unless there is one, verify it, and return its path."""
    if name not in FILE_SETS:
        raise unknown_name(name, list(FILE_SETS))
    spec = FILE_SETS[name]
    here = copies(spec)
    if here:
        here[0].read(spec)  # verifies the values
        return here[0].path
    download_set(spec, progress=progress)
    return cache_folder() / spec.file


def unknown_name(name: str, known: list[str] | None = None) -> InvalidInputError:
    """Return the error for a name that is not among `known`."""
    known = names() if known is None else known
    return InvalidInputError(
        f"There is no data set {name!r}. {did_you_mean(name, known)}Known are {', '.join(known)}; a file of your own "
        f"needs its suffix ({', '.join(SUFFIXES)})."
    )


def _count(name: str, value: Any, *, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):  # True is an int in Python, but not a count
        raise InvalidTypeError(f"{name}={value!r} is not an integer; give an int or None.")
    if value < least:
        raise InvalidInputError(f"{name}={value} must be at least {least}.")
    return int(value)

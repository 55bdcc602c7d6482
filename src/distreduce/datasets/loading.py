"""The entry point: from a name or a path to a :class:`Dataset`.

Sets with a name are in sets.json, with origins, hashes, shapes, licences and citations. In files of one's own, features
must be numbers, and targets are read as on the command line.
"""

from __future__ import annotations

import json
import numbers
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.text import did_you_mean
from distreduce._utils.typing import Array
from distreduce.datasets import origins
from distreduce.datasets.dataset import Dataset, ScikitLearnSet
from distreduce.datasets.download import FOLDER_VARIABLE, FileSet, RemoteFile, cache_folder, copies, download_set
from distreduce.exceptions import DatasetFileError, InvalidInputError, InvalidTypeError
from distreduce.tables.cells import LARGEST_EXACT
from distreduce.tables.formats import SUFFIXES
from distreduce.tables.reading import read_table
from distreduce.tables.target import read_target


def _file_set(parse: str, remote: list[dict[str, Any]], **facts: Any) -> FileSet:
    """Make a set; `parse` is the name of a function of :mod:`~distreduce.datasets.origins`."""
    return FileSet(parse=getattr(origins, parse), remote=tuple(RemoteFile(**_freeze(file)) for file in remote), **facts)


def _freeze(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}


_SETS = json.loads((files("distreduce.datasets") / "sets.json").read_text(encoding="utf-8"))
FILE_SETS: dict[str, FileSet] = {facts["name"]: _file_set(**_freeze(facts)) for facts in _SETS["files"]}
GENERATED_SETS = {facts["name"]: ScikitLearnSet(**_freeze(facts)) for facts in _SETS["generators"]}
BUNDLED_SETS = {facts["name"]: ScikitLearnSet(**_freeze(facts)) for facts in _SETS["bundled"]}


def load_own_file(path: Path, target: str | list[str] | None) -> Dataset:
    """Read a file as a data set; see :func:`distreduce.datasets.load`."""
    targets = [target] if isinstance(target, str) else list(target or ())
    table = read_table(path, targets, default_to_last=target is None)
    # Often the index that pandas wrote: as a feature it would be the row number, which can leak the target.
    if table.unnamed:
        raise InvalidInputError(
            f"{path.name} has a column without a name ({table.unnamed[0]!r} here). If it counts rows, save without it "
            "(DataFrame.to_csv(index=False)); otherwise give it a name."
        )
    # Identifiers that float64 merges would look like repeated values.
    for name, column in table.frame.items():
        if pd.api.types.is_integer_dtype(column) and ((column > LARGEST_EXACT) | (column < -LARGEST_EXACT)).any():
            raise InvalidInputError(
                f"Column {name!r} of {path.name} has whole numbers beyond 2^53, which float64 would round; if it is an "
                "identifier, drop it."
            )
    read = read_target(table.targets, "auto", path.name)
    y, class_names = (read.y.to_numpy(), None) if read.task == "regression" else _encode_labels(read.y)
    return Dataset(
        path.name, _features(table.features, path.name), y, read.task, tuple(table.features.columns),
        tuple(table.targets.columns), class_names, table.image_shape, " ".join(table.notes),
    )  # fmt: skip


def _features(table: pd.DataFrame, where: str) -> Array:
    """Return numbers and booleans as float64, NaN where missing; raise InvalidInputError for any other column."""
    types = pd.api.types
    # No guessing here, unlike on the command line: the user has Python to encode what is not a number.
    other = [
        name for name, column in table.items() if not types.is_numeric_dtype(column) or types.is_complex_dtype(column)
    ]
    if other:
        example = next(iter(table[other[0]].dropna()), None)
        more = f" (and so do {len(other) - 1} more: {', '.join(other[1:6])})" if len(other) > 1 else ""
        raise InvalidInputError(
            f"Column {other[0]!r} of {where} holds {example!r}, which is not a number{more}. Turn it into numbers "
            "(pandas.get_dummies for categories, a difference in days for dates), or drop it."
        )
    return np.column_stack([column.to_numpy(dtype=np.float64, na_value=np.nan) for _, column in table.items()])


def _encode_labels(labels: pd.Series) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Return labels as numbers, NaN where unknown, and the names of those that are text."""
    known = labels.notna().to_numpy()
    values, names = np.array(labels[known].tolist()), None  # tolist: integers or texts, not objects
    if values.dtype.kind == "U":  # text; whole numbers are kept as they are
        classes, values = np.unique(values, return_inverse=True)
        names = tuple(str(label) for label in classes)
    if known.all():
        return values.astype(np.int64), names
    y = np.full(len(labels), np.nan)  # int64 has no NaN
    y[known] = values
    return y, names


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

"""The one entry: a name or a path in, a :class:`Dataset` out."""

from __future__ import annotations

import numbers
import os
from pathlib import Path

from distreduce._utils.text import did_you_mean
from distreduce.datasets.built_in import BUNDLED_SETS, GENERATED_SETS
from distreduce.datasets.bundle import Dataset
from distreduce.datasets.fetch import fetch_set
from distreduce.datasets.places import FOLDER_VARIABLE, Copy, cache_folder, copies
from distreduce.datasets.registry import FILE_SETS
from distreduce.datasets.spec import FileSet
from distreduce.exceptions import DatasetFileError, InvalidInputError, InvalidTypeError
from distreduce.tables.files import load_own


def names() -> list[str]:
    """Names that :func:`load` knows: the paper's files, its generators, scikit-learn's own sets."""
    return [*FILE_SETS, *GENERATED_SETS, *BUNDLED_SETS]


def load(
    name_or_path: str | os.PathLike[str],
    *,
    n_samples: int | None = None,
    random_state: int | None = None,
    target: str | list[str] | None = None,
    download: bool = True,
) -> Dataset:
    """Load a data set by name, or a file of one's own.

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
        Column or columns to predict. Own files: the last column by default, the array ``y`` or ``labels`` of an NPZ,
        and a column of ``obs`` that must be named for h5ad.
    download : bool
        Whether a set that is neither in the folder DISTREDUCE_DATA nor in the cache may be fetched.

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
    if name in GENERATED_SETS:
        dataset = GENERATED_SETS[name].load(n_samples, random_state)
    else:
        dataset = _whole(name_or_path, target, download)
        dataset = dataset if n_samples is None else dataset.draw(n_samples, random_state)
    if target is None or name not in names():
        return dataset
    return dataset.with_targets([target] if isinstance(target, str) else list(target))


def _whole(name_or_path: str | os.PathLike[str], target: str | list[str] | None, download: bool) -> Dataset:
    name = str(name_or_path)
    if name in FILE_SETS:
        return _from_file(FILE_SETS[name], download)
    if name in BUNDLED_SETS:
        return BUNDLED_SETS[name].load()
    path = Path(name_or_path)
    if isinstance(name_or_path, str) and not path.suffix and path.name == name and not path.exists():
        raise unknown_name(name)
    return load_own(path, target)


def _from_file(spec: FileSet, download: bool) -> Dataset:
    here = copies(spec)
    if here:
        return spec.dataset(here[0].read(spec))
    if not download:
        raise DatasetFileError(
            f"{spec.name!r} is not here: no {spec.file} in {cache_folder()} nor in a folder {FOLDER_VARIABLE}. "
            f"Allow the download, or run `distreduce data fetch {spec.name}`."
        )
    return spec.dataset(fetch_set(spec))


def fetch(name: str, *, progress: bool = True) -> Path:
    """Make sure that the file of a set is here and sound, and say where; see :func:`load` for where it is sought."""
    if name not in FILE_SETS:
        raise unknown_name(name, list(FILE_SETS))
    spec = FILE_SETS[name]
    here = copies(spec)
    if here:
        here[0].read(spec)
        return here[0].path
    fetch_set(spec, progress=progress)
    return Copy("cache", cache_folder() / spec.file).path


def unknown_name(name: str, known: list[str] | None = None) -> InvalidInputError:
    """The error for a name that is none of `known`."""
    known = names() if known is None else known
    return InvalidInputError(
        f"There is no data set {name!r}. {did_you_mean(name, known)}Known are {', '.join(known)}; a file of your own "
        "needs its ending (.csv, .tsv, .parquet, .npz, .h5ad)."
    )


def _count(name: str, value: int | None, *, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidTypeError(f"{name}={value!r} is no whole number; give an int or None.")
    if value < least:
        raise InvalidInputError(f"{name}={value} must be at least {least}.")
    return int(value)

"""The one reader of people's files: features and targets of a CSV, TSV, Parquet, NPZ or h5ad file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from distreduce._utils.safe_npz import read_arrays
from distreduce._utils.text import did_you_mean
from distreduce.exceptions import DatasetFileError, InvalidInputError
from distreduce.tables import binary_files as binary
from distreduce.tables.text_file import TextFile, translate_read_errors

SUFFIXES = (".csv", ".tsv", ".parquet", ".npz", ".h5ad")
CHUNK = 20_000  # rows of a text file that :func:`read_chunks` holds at once


@dataclass(frozen=True)
class Table:
    """Features and targets of a file, as written.

    Attributes
    ----------
    features : DataFrame
    targets : DataFrame
    image_shape : (rows, columns) or None
        Shape of the images that the features were flattened from.
    notes : tuple of str
        What the user should know about how the file was read.
    unnamed : tuple of str
        Names that were made up for columns without one.
    """

    features: pd.DataFrame
    targets: pd.DataFrame
    image_shape: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """All columns side by side, targets last."""
        return pd.concat([self.features, self.targets], axis=1)


def check_file(path: Path) -> None:
    """Raise DatasetFileError unless `path` is a file with a known suffix."""
    if path.is_dir():
        raise DatasetFileError(f"{path} is a folder; name a file in it.")
    if path.suffix.lower() not in SUFFIXES:
        raise DatasetFileError(f"{path} ends in none of {', '.join(SUFFIXES)}; convert it to one of them.")
    if not path.is_file():
        raise DatasetFileError(f"There is no file {path} (looked from {Path.cwd()}).")


def read_table(
    path: Path, targets: Sequence[str] = (), as_text: Sequence[str] = (), *, default_to_last: bool = False
) -> Table:
    """Read a file and separate its targets from its features.

    Parameters
    ----------
    path : Path
        .csv, .tsv, .parquet, .npz (X and an array of targets) or .h5ad (X and columns of obs).
    targets : sequence of str
        Names of the targets; may be empty for an NPZ file that has ``y`` or ``labels``.
    as_text : sequence of str
        Columns of a text file to keep as written.
    default_to_last : bool
        If no target is named, take the last column of a .csv, .tsv or .parquet file.

    Returns
    -------
    Table

    Raises
    ------
    DatasetFileError
        The file is missing, damaged, not of a known kind, or would take too much memory.
    InvalidInputError
        The file has no usable header, no rows, or no such target.
    """
    check_file(path)
    # Text and Parquet are one table, split below. NPZ and h5ad hold features and targets apart.
    where, kind = path.name, path.suffix.lower()
    if kind in (".csv", ".tsv"):
        text = TextFile.detect(path)
        frame, notes, unnamed = text.read(as_text), text.notes, text.header.unnamed
    else:
        with translate_read_errors(path):
            if kind == ".npz":
                arrays = read_arrays(path)
                features, image_shape = binary.npz_features(arrays, where)
                return Table(features, binary.npz_targets(arrays, targets, where), image_shape)
            if kind == ".h5ad":
                cells = binary.read_h5ad(path)
                return Table(binary.h5ad_features(cells, where), binary.h5ad_targets(cells, targets, where))
            frame, notes, unnamed = binary.read_parquet(path), (), ()
    if default_to_last and not targets:
        targets = list(frame.columns[-1:])
    chosen = _check_targets(frame, targets, where)
    return Table(frame.drop(columns=chosen), frame[chosen], None, notes, unnamed)


def read_chunks(path: Path, as_text: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
    """Yield all columns of a file, whatever its targets; a text file comes in chunks of `CHUNK` rows."""
    check_file(path)
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        yield from TextFile.detect(path).read_chunks(CHUNK, as_text)
        return
    # The other formats come as one chunk.
    with translate_read_errors(path):
        if kind == ".npz":
            frame = binary.npz_features(read_arrays(path), path.name)[0]
        elif kind == ".h5ad":
            frame = binary.h5ad_features(binary.read_h5ad(path), path.name)
        else:
            frame = binary.read_parquet(path)
    yield frame


def _check_targets(frame: pd.DataFrame, targets: Sequence[str], where: str) -> list[str]:
    """Return the targets as a list; each must be a column, and a feature must remain."""
    known = list(frame.columns)
    names = ", ".join(known[:30]) + (", …" if len(known) > 30 else "")
    if not len(frame):
        raise InvalidInputError(f"{where} has column names but no rows.")
    if len(known) < 2:
        # A file separated by blanks also shows up as one column.
        count = f"one column ({names})" if known else "no columns"
        raise InvalidInputError(f"{where} has {count}; features and a target are needed.")
    if not targets:
        raise InvalidInputError(
            f"Name at least one column of {where} to predict (--target COLUMN, or target=… in Python). It has {names}."
        )
    for name in targets:
        if name not in known:
            raise InvalidInputError(f"{where} has no column {name!r}. {did_you_mean(name, known)}It has {names}.")
    if len(set(targets)) < len(targets):
        raise InvalidInputError(f"target={list(targets)!r} must not name a column twice.")
    if len(targets) == len(known):
        raise InvalidInputError(f"{where} has no column besides the target ({names}); features are needed.")
    return list(targets)

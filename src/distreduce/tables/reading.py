"""The one reader of people's files: features and targets of a text, Parquet, Excel, NPZ or h5ad file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from distreduce._utils.files import read_arrays
from distreduce._utils.text import did_you_mean
from distreduce.exceptions import InvalidCellError, InvalidInputError
from distreduce.tables import binary_files as binary
from distreduce.tables.formats import TEXT, TextLayout, check_file, kind_of
from distreduce.tables.text_file import AS_FOUND, TextFile, translate_read_errors

CHUNK = 20_000  # rows of a text file that :func:`read_chunks` holds at once


@dataclass(frozen=True)
class Table:
    """Features and targets of a file, as written, and notes on how it was read."""

    features: pd.DataFrame
    targets: pd.DataFrame
    image_shape: tuple[int, int] | None = None  # of the images that the features were flattened from
    notes: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()  # names that were made up
    ids: pd.Series | None = None  # names of the rows

    @property
    def frame(self) -> pd.DataFrame:
        """All columns side by side: names of rows first, targets last."""
        ids = [] if self.ids is None else [self.ids]
        return pd.concat([*ids, self.features, self.targets], axis=1)


def read_table(
    path: Path,
    targets: Sequence[str] = (),
    as_text: Sequence[str] = (),
    *,
    default_to_last: bool = False,
    layout: TextLayout = AS_FOUND,
    id_column: str | None = None,
) -> Table:
    """Read a file and separate its targets from its features.

    `targets` may be empty for an NPZ file that has ``y`` or ``labels``, and with `default_to_last`, which takes the
    last column of a table. The columns `as_text` of a text file are kept as written. The names of rows in `id_column`
    are not a feature. Raises DatasetFileError if the file is missing, damaged, not of a known kind or too large for the
    memory, and InvalidInputError if it has no usable header, no rows or no such target.
    """
    check_file(path)
    # Text and Parquet are one table, split below. NPZ and h5ad hold features and targets apart.
    where, kind = path.name, kind_of(path)
    if kind in TEXT:
        text = TextFile.detect(path, layout)
        frame, notes, unnamed = text.read([*as_text, *filter(None, [id_column])]), text.notes, text.header.unnamed
    else:
        with translate_read_errors(path):
            if kind == ".npz":
                if id_column is not None:
                    raise InvalidInputError(f"{where} is an NPZ file, which has no columns of names; leave out --id.")
                arrays = read_arrays(path)
                features, image_shape = binary.npz_features(arrays, where)
                return Table(features, binary.npz_targets(arrays, targets, where), image_shape)
            if kind == ".h5ad":
                cells = binary.read_h5ad(path)
                obs = binary.h5ad_features(cells, where), binary.h5ad_targets(cells, targets, where)
                return Table(*obs, ids=binary.h5ad_names(cells))
            frame, notes, unnamed = binary.read_frame(path), (), ()
    if default_to_last and not targets:
        targets = list(frame.columns[-1:])
    ids = None
    if id_column is not None and id_column not in targets:
        _check_targets(frame, [id_column], where)
        ids, frame = frame[id_column], frame.drop(columns=id_column)
    chosen = _check_targets(frame, targets, where)
    return Table(frame.drop(columns=chosen), frame[chosen], None, notes, unnamed, ids)


def read_chunks(path: Path, as_text: Sequence[str] = (), *, layout: TextLayout = AS_FOUND) -> Iterator[pd.DataFrame]:
    """Yield all columns of a file, whatever its targets; a text file comes in chunks of `CHUNK` rows."""
    check_file(path)
    kind = kind_of(path)
    if kind in TEXT:
        yield from TextFile.detect(path, layout).read_chunks(CHUNK, as_text)
        return
    # The other formats come as one chunk.
    with translate_read_errors(path):
        if kind == ".npz":
            frame = binary.npz_features(read_arrays(path), path.name)[0]
        elif kind == ".h5ad":
            cells = binary.read_h5ad(path)
            frame = pd.concat([binary.h5ad_names(cells), binary.h5ad_features(cells, path.name)], axis=1)
        else:
            frame = binary.read_frame(path)
    yield frame


@contextmanager
def locate_cells(path: Path, layout: TextLayout = AS_FOUND) -> Iterator[None]:
    """Add the line of a text file, or the row of another, to an error about a cell."""
    try:
        yield
    except InvalidCellError as error:
        text = TextFile.detect(path, layout) if kind_of(path) in TEXT else None
        place = f"row {error.row + 1}" if text is None else f"line {text.find_line(error.row)}"
        raise InvalidInputError(f"{error} The first one is in {place} of {path.name}.") from error


def _check_targets(frame: pd.DataFrame, targets: Sequence[str], where: str) -> list[str]:
    """Return the targets as a list; each must be a column, and a feature must remain."""
    known, names = list(frame.columns), list_columns(frame)
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
        require_column(frame, name, where)
    if len(set(targets)) < len(targets):
        raise InvalidInputError(f"target={list(targets)!r} must not name a column twice.")
    if len(targets) == len(known):
        raise InvalidInputError(f"{where} has no column besides the target ({names}); features are needed.")
    return list(targets)


def require_column(frame: pd.DataFrame, name: str, where: str) -> None:
    """Raise InvalidInputError unless the file has this column."""
    if name not in frame:
        guess = did_you_mean(name, frame.columns)
        raise InvalidInputError(f"{where} has no column {name!r}. {guess}It has {list_columns(frame)}.")


def list_columns(frame: pd.DataFrame) -> str:
    """Return the names of the first columns."""
    return ", ".join(map(str, frame.columns[:30])) + (", …" if frame.shape[1] > 30 else "")

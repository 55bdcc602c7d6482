"""The one reader of people's files: features and targets of a text, Parquet, Excel, NPZ or h5ad file.

All are read within a limit on memory and without unpickling.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.fixes import parse_version

from distreduce._utils.files import Arrays, allowed_bytes, read_arrays
from distreduce._utils.text import did_you_mean
from distreduce._utils.versions import import_optional
from distreduce.exceptions import InvalidCellError, InvalidInputError, MissingDependencyError
from distreduce.tables.cells import empty_gaps
from distreduce.tables.formats import TEXT, TextLayout, check_file, kind_of
from distreduce.tables.text_file import AS_FOUND, TextFile, reject_title, translate_read_errors, unique_names

HEAD = 50  # rows of a sheet that tell a title from names
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
                features, image_shape = npz_features(arrays, where)
                return Table(features, npz_targets(arrays, targets, where), image_shape)
            if kind == ".h5ad":
                cells = read_h5ad(path)
                obs = h5ad_features(cells, where), h5ad_targets(cells, targets, where)
                return Table(*obs, ids=h5ad_names(cells))
            frame, notes, unnamed = read_whole(path), (), ()
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
            frame = npz_features(read_arrays(path), path.name)[0]
        elif kind == ".h5ad":
            cells = read_h5ad(path)
            frame = pd.concat([h5ad_names(cells), h5ad_features(cells, path.name)], axis=1)
        else:
            frame = read_whole(path)
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
    return ", ".join(map(str, frame.columns[:30])) + (", …" if frame.shape[1] > 30 else "")


BATCH = 1024  # rows of a Parquet file between two checks of the memory


def read_whole(path: Path) -> pd.DataFrame:
    """Return the table of a Parquet file, or the first sheet of an Excel workbook."""
    return empty_gaps(read_excel(path) if path.suffix.lower() == ".xlsx" else read_parquet(path))


def read_excel(path: Path) -> pd.DataFrame:
    """Return the first sheet of a workbook; its first row holds the names."""
    import_optional("openpyxl", "Reading .xlsx needs openpyxl: pip install openpyxl, or save the sheet as CSV.")
    # A workbook is a zip archive of XML, which a kilobyte can make gigabytes.
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > allowed_bytes(path):
        raise ValueError(f"it would unpack to {size} bytes, more than allowed for its size")
    sheet = pd.read_excel(path, engine="openpyxl", header=None)
    if not len(sheet):
        raise InvalidInputError(f"{path.name} has no cells in its first sheet.")
    rows = [["" if pd.isna(cell) else str(cell).strip() for cell in row] for row in sheet[:HEAD].to_numpy()]
    if sum(map(bool, rows[0])) == 1:
        reject_title(rows[0], rows[1:], path.name)
    names, _ = unique_names(rows[0])
    return sheet[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()


def read_parquet(path: Path) -> pd.DataFrame:
    """Return the table of a Parquet file, read in batches: a kilobyte of it can stand for gigabytes of equal cells."""
    advice = "Reading .parquet needs pyarrow: pip install 'distreduce[parquet]'."
    pyarrow, parquet = (import_optional(name, advice) for name in ("pyarrow", "pyarrow.parquet"))
    if parse_version(pyarrow.__version__) < parse_version("14.0.1"):  # older ones can run code that a file brings
        raise MissingDependencyError(f"pyarrow {pyarrow.__version__} is not safe: pip install -U pyarrow.")
    allowed, batches, size = allowed_bytes(path), [], 0
    with parquet.ParquetFile(path) as file:
        # Stop as soon as the limit is passed: what the rest unpacks to is known only once it is read.
        for batch in file.iter_batches(BATCH):
            size += batch.nbytes
            if size > allowed:
                raise ValueError(f"it would unpack to more than the {allowed} bytes allowed for its size")
            batches.append(batch)
        table = pyarrow.Table.from_batches(batches, file.schema_arrow).to_pandas().rename(columns=str)
    _reject_duplicates(list(table.columns), path.name, "rename one of them")
    for name in table.columns:
        if any(isinstance(cell, bytes) for cell in table[name]):  # str() would turn them into "b'…'"
            raise InvalidInputError(
                f"Column {name!r:.100} of {path.name} holds bytes, which are not text; convert or drop it."
            )
    return table.reset_index(drop=True)


def npz_features(arrays: Arrays, where: str) -> tuple[pd.DataFrame, tuple[int, int] | None]:
    """Return the columns x0, x1, … of the array X, and the shape of its images if it has three dimensions."""
    X = _array(arrays, "X", where)
    image_shape = (int(X.shape[1]), int(X.shape[2])) if X.ndim == 3 else None
    X = X.reshape(len(X), -1) if image_shape else X  # one column per pixel
    if X.ndim != 2 or not X.size:
        raise InvalidInputError(
            f"{where}: X has shape {arrays['X'].shape}; give (n, d), or (n, rows, columns) for images."
        )
    return pd.DataFrame(X, columns=[f"x{column}" for column in range(X.shape[1])]), image_shape


def npz_targets(arrays: Arrays, targets: Sequence[str], where: str) -> pd.DataFrame:
    """Return the array of targets: the one named, or ``y`` or ``labels``; the columns of a 2-D array are numbered."""
    if len(targets) > 1:
        raise InvalidInputError(f"target={list(targets)!r}: an NPZ file has its targets in one array; name that array.")
    wanted = targets[0] if targets else next((name for name in ("y", "labels") if name in arrays), "y")
    X, y = _array(arrays, "X", where), _array(arrays, wanted, where)
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise InvalidInputError(
            f"{where}: X has shape {X.shape} and {wanted} {y.shape}; both need the same number of rows, and {wanted} "
            "the shape (n,) or (n, targets)."
        )
    several = y.ndim == 2 and y.shape[1] > 1  # (n, 1) is one target under its own name
    names = [f"{wanted}{column}" for column in range(y.shape[1])] if several else [wanted]
    return pd.DataFrame(y.reshape(len(y), -1), columns=names)


def _array(arrays: Arrays, name: str, where: str) -> NDArray[Any]:
    if name not in arrays:
        raise InvalidInputError(f"{where} has no array {name!r}; it has {', '.join(arrays) or 'none'}.")
    return arrays[name]


def read_h5ad(path: Path) -> Any:
    return import_optional("anndata", "Reading .h5ad needs anndata: pip install 'distreduce[anndata]'.").read_h5ad(path)


def h5ad_features(cells: Any, where: str) -> pd.DataFrame:
    """Return the matrix X as a dense table, one column per gene."""
    if cells.X is None or not cells.n_obs or not cells.n_vars:
        raise InvalidInputError(f"{where} has no matrix X.")
    genes = [str(gene) for gene in cells.var_names]
    _reject_duplicates(genes, where, "call var_names_make_unique() and write it again")
    # The guesses about columns need dense cells, although count matrices are mostly zeros.
    X: Any = cells.X.toarray() if hasattr(cells.X, "toarray") else cells.X
    return pd.DataFrame(np.asarray(X), columns=genes)


def h5ad_names(cells: Any) -> pd.Series:
    return pd.Series(cells.obs_names.astype(str), dtype=object, name="obs_names")


def h5ad_targets(cells: Any, targets: Sequence[str], where: str) -> pd.DataFrame:
    """Return the named columns of ``obs``."""
    columns = ", ".join(map(str, cells.obs.columns)) or "none"
    # No default here: obs holds batches, counts and clusters, and its last column is rarely the one to predict.
    if not targets:
        raise InvalidInputError(
            f"Name the column of obs to predict (--target COLUMN, or target=… in Python). {where} has {columns}."
        )
    missing = [name for name in targets if name not in cells.obs]
    if missing:
        raise InvalidInputError(f"{where} has no column {missing[0]!r} in obs; it has {columns}.")
    return cells.obs[list(targets)].reset_index(drop=True)


def _reject_duplicates(names: Sequence[str], where: str, advice: str) -> None:
    repeated = pd.Index(names).duplicated()
    if repeated.any():
        raise InvalidInputError(f"{where} has two columns called {names[int(repeated.argmax())]!r:.100}; {advice}.")

"""Files of one's own: tables (.csv, .tsv, .parquet) and arrays (.npz, .h5ad)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.fixes import parse_version

from distreduce._utils.safe_npz import DAMAGE, allowed_bytes, read_arrays
from distreduce.datasets.bundle import Dataset
from distreduce.datasets.columns import choose_columns, feature_matrix, read_target
from distreduce.exceptions import DatasetFileError, DistReduceError, InvalidInputError, MissingDependencyError

Target = str | Sequence[str] | None
SUFFIXES = (".csv", ".tsv", ".parquet", ".npz", ".h5ad")
BATCH = 1024  # rows of a Parquet file between two looks at the memory
# Read the float64 nearest to the text; from pandas 3.1 on that is the default, and asking for it is deprecated.
EXACT: dict[str, Any] = (
    {} if parse_version(pd.__version__) >= parse_version("3.1") else {"float_precision": "round_trip"}
)


def load_own(path: Path, target: Target) -> Dataset:
    """A file as a bundle; see :func:`distreduce.datasets.load`."""
    readers: dict[str, Callable[[Path, Target], Dataset]] = {
        ".csv": _table, ".tsv": _table, ".parquet": _table, ".npz": _npz, ".h5ad": _h5ad
    }  # fmt: skip
    check_file(path)
    with damage_named(path):
        return readers[path.suffix.lower()](path, target)


def check_file(path: Path) -> None:
    """Refuse what is no file, or of none of the kinds that can be read."""
    if path.is_dir():
        raise DatasetFileError(f"{path} is a folder; name a file in it.")
    if path.suffix.lower() not in SUFFIXES:
        raise DatasetFileError(f"{path} ends in none of {', '.join(SUFFIXES)}; convert it to one of them.")
    if not path.is_file():
        raise DatasetFileError(f"There is no file {path} (looked from {Path.cwd()}).")


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Whatever a library says about a broken file becomes one sentence with the file's name."""
    try:
        yield
    except DistReduceError:
        raise
    except (*DAMAGE, csv.Error) as error:
        reason = str(error).strip() or type(error).__name__
        raise DatasetFileError(f"{path} cannot be read as {path.suffix[1:]} ({reason:.500}).") from error


def from_table(table: pd.DataFrame, target: Target, name: str) -> Dataset:
    """A frame as a bundle, the last column being the target unless one is named."""
    table = table.rename(columns=str)
    if table.shape[1] < 2:
        raise InvalidInputError(
            f"{name} has {'one column' if table.shape[1] else 'no columns'}; features and a target are needed. "
            "If values are separated by ';', save it with ',' (.csv) or tabs (.tsv)."
        )
    if not len(table):
        raise InvalidInputError(f"{name} has column names but no rows.")
    chosen = choose_columns(table, table.columns[-1] if target is None else target, name)
    features = table.drop(columns=chosen)
    y, task, class_names = read_target(table[chosen], name)
    return Dataset(
        name, feature_matrix(features, name), y, task, tuple(features.columns), tuple(chosen), class_names
    )  # fmt: skip


def _table(path: Path, target: Target) -> Dataset:
    if path.suffix.lower() == ".parquet":
        return from_table(read_parquet(path), target, path.name)
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        # utf-8-sig: spreadsheets put a mark before the first name.
        table = pd.read_csv(path, sep=separator, encoding="utf-8-sig", **EXACT)
    except pd.errors.EmptyDataError as error:
        raise InvalidInputError(f"{path.name} is empty.") from error
    _check_names(table, path.name)
    return from_table(table, target, path.name)


def read_parquet(path: Path) -> pd.DataFrame:
    """The table of a Parquet file, read in parts: a kilobyte of it can stand for gigabytes of equal cells."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("Reading .parquet needs pyarrow: pip install 'distreduce[parquet]'.") from error
    if parse_version(pyarrow.__version__) < parse_version("14.0.1"):  # older ones can run code that a file brings
        raise MissingDependencyError(f"pyarrow {pyarrow.__version__} is not safe: pip install -U pyarrow.")
    allowed, parts, size = allowed_bytes(path), [], 0
    with pyarrow.parquet.ParquetFile(path) as file:
        for part in file.iter_batches(BATCH):
            size += part.nbytes
            if size > allowed:
                raise ValueError(f"it would unpack to more than the {allowed} bytes that are allowed for its size")
            parts.append(part)
        table = pyarrow.Table.from_batches(parts, file.schema_arrow).to_pandas().rename(columns=str)
    _refuse_doubles(list(table.columns), path.name, "rename one of them")
    _refuse_binary(table, path.name)
    return table


def _refuse_doubles(names: Sequence[str], where: str, advice: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInputError(f"{where} has two columns called {name!r:.100}; {advice}.")
        seen.add(name)


def _refuse_binary(table: pd.DataFrame, where: str) -> None:
    for name in table.columns:
        if any(isinstance(cell, bytes) for cell in table[name]):
            raise InvalidInputError(
                f"Column {name!r:.100} of {where} holds bytes, which are no text; convert or drop it."
            )


def _check_names(table: pd.DataFrame, name: str) -> None:
    """A first row of numbers is no header, and a column without a name is most often a row number."""
    columns = [str(column) for column in table.columns]
    nameless = [position + 1 for position, column in enumerate(columns) if column.startswith("Unnamed: ")]
    if nameless:
        raise InvalidInputError(
            f"Column {nameless[0]} of {name} has no name. If it counts rows, save without it "
            "(DataFrame.to_csv(index=False)); otherwise give it a name."
        )
    refuse_numbers_as_names(columns, name)


def refuse_numbers_as_names(columns: Sequence[str], name: str) -> None:
    """A first row of numbers is no header."""
    if all(_is_text_of_number(column) for column in columns):
        raise InvalidInputError(f"The first row of {name} holds numbers; give it a first row of column names.")


def _is_text_of_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _npz(path: Path, target: Target) -> Dataset:
    arrays = read_arrays(path)
    features, image_shape = npz_features(arrays, path.name)
    return _joined(path, features, npz_targets(arrays, target, path.name), image_shape)


def npz_features(arrays: dict[str, NDArray[Any]], where: str) -> tuple[pd.DataFrame, tuple[int, int] | None]:
    """Columns x0, x1, … of the array X, and the shape of its images if it has three dimensions."""
    X = _array(arrays, "X", where)
    image_shape = (int(X.shape[1]), int(X.shape[2])) if X.ndim == 3 else None
    X = X.reshape(len(X), -1) if image_shape else X
    if X.ndim != 2 or not X.size:
        raise InvalidInputError(
            f"{where}: X has shape {arrays['X'].shape}; needed is (n, d), or (n, rows, columns) for images."
        )
    return pd.DataFrame(X, columns=[f"x{column}" for column in range(X.shape[1])]), image_shape


def npz_targets(arrays: dict[str, NDArray[Any]], target: Target, where: str) -> pd.DataFrame:
    """The array of targets, ``y`` or ``labels`` unless it is named; several columns are numbered."""
    wanted = target if target is not None else next((name for name in ("y", "labels") if name in arrays), "y")
    if not isinstance(wanted, str):
        raise InvalidInputError(f"target={target!r}: an NPZ keeps its targets in one array; name that.")
    X, y = _array(arrays, "X", where), _array(arrays, wanted, where)
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise InvalidInputError(
            f"{where}: X has shape {X.shape} and {wanted} {y.shape}; needed are as many rows in both, and (n,) or "
            f"(n, targets) for {wanted}."
        )
    several = y.ndim == 2 and y.shape[1] > 1
    names = [f"{wanted}{column}" for column in range(y.shape[1])] if several else [wanted]
    return pd.DataFrame(y.reshape(len(y), -1), columns=names)


def _array(arrays: dict[str, NDArray[Any]], name: str, where: str) -> NDArray[Any]:
    if name not in arrays:
        raise InvalidInputError(f"{where} has no array {name!r}; it has {', '.join(arrays) or 'none'}.")
    return arrays[name]


def _h5ad(path: Path, target: Target) -> Dataset:
    cells = read_h5ad(path)
    targets = h5ad_targets(cells, target, path.name)
    return _joined(path, h5ad_features(cells, path.name), targets, None)


def read_h5ad(path: Path) -> Any:
    """The AnnData of a file."""
    try:
        import anndata
    except ImportError as error:
        raise MissingDependencyError("Reading .h5ad needs anndata: pip install 'distreduce[anndata]'.") from error
    return anndata.read_h5ad(path)


def h5ad_features(cells: Any, where: str) -> pd.DataFrame:
    """The matrix X as a dense table, a column a gene."""
    if cells.X is None or not cells.n_obs or not cells.n_vars:
        raise InvalidInputError(f"{where} has no matrix X.")
    genes = [str(gene) for gene in cells.var_names]
    _refuse_doubles(genes, where, "call var_names_make_unique() and write it again")
    X: Any = cells.X.toarray() if hasattr(cells.X, "toarray") else cells.X
    return pd.DataFrame(np.asarray(X), columns=genes)


def h5ad_targets(cells: Any, target: Target, where: str) -> pd.DataFrame:
    """Columns of ``obs``, which must be named."""
    columns = ", ".join(map(str, cells.obs.columns)) or "none"
    if target is None:
        raise InvalidInputError(f"{where}: name the column of obs to predict (target=…); it has {columns}.")
    wanted = [target] if isinstance(target, str) else list(target)
    missing = [name for name in wanted if name not in cells.obs]
    if missing:
        raise InvalidInputError(f"{where} has no column {missing[0]!r} in obs; it has {columns}.")
    return cells.obs[wanted].reset_index(drop=True)


def _joined(path: Path, features: pd.DataFrame, targets: pd.DataFrame, image_shape: tuple[int, int] | None) -> Dataset:
    y, task, class_names = read_target(targets, path.name)
    return Dataset(
        path.name, feature_matrix(features, path.name), y, task, tuple(features.columns), tuple(targets.columns),
        class_names, image_shape,
    )  # fmt: skip

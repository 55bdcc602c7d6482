"""Files of one's own: tables (.csv, .tsv, .parquet) and arrays (.npz, .h5ad)."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.fixes import parse_version

from distreduce.datasets.bundle import Dataset
from distreduce.datasets.columns import choose_columns, feature_matrix, read_target
from distreduce.datasets.storage import DAMAGE
from distreduce.exceptions import DatasetFileError, InvalidInputError, MissingDependencyError

Target = str | Sequence[str] | None
# Read the float64 nearest to the text; from pandas 3.1 on that is the default, and asking for it is deprecated.
EXACT: dict[str, Any] = (
    {} if parse_version(pd.__version__) >= parse_version("3.1") else {"float_precision": "round_trip"}
)


def load_own(path: Path, target: Target) -> Dataset:
    """A file as a bundle; see :func:`distreduce.datasets.load`."""
    readers: dict[str, Callable[[Path, Target], Dataset]] = {
        ".csv": _table, ".tsv": _table, ".parquet": _table, ".npz": _npz, ".h5ad": _h5ad
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DatasetFileError(f"{path} ends in none of {', '.join(readers)}; convert it to one of them.")
    if not path.is_file():
        raise DatasetFileError(f"There is no file {path} (looked from {Path.cwd()}).")
    try:
        return reader(path, target)
    except InvalidInputError:
        raise
    except (*DAMAGE, SyntaxError) as error:
        raise DatasetFileError(f"{path} cannot be read as {path.suffix[1:]} ({error}).") from error


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
        try:
            table = pd.read_parquet(path)
        except ImportError as error:
            raise MissingDependencyError("Reading .parquet needs pyarrow: pip install pyarrow.") from error
        return from_table(table, target, path.name)
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        # utf-8-sig: spreadsheets put a mark before the first name.
        table = pd.read_csv(path, sep=separator, encoding="utf-8-sig", **EXACT)
    except pd.errors.EmptyDataError as error:
        raise InvalidInputError(f"{path.name} is empty.") from error
    _check_names(table, path.name)
    return from_table(table, target, path.name)


def _check_names(table: pd.DataFrame, name: str) -> None:
    """A first row of numbers is no header, and a column without a name is most often a row number."""
    columns = [str(column) for column in table.columns]
    nameless = [position + 1 for position, column in enumerate(columns) if column.startswith("Unnamed: ")]
    if nameless:
        raise InvalidInputError(
            f"Column {nameless[0]} of {name} has no name. If it counts rows, save without it "
            "(DataFrame.to_csv(index=False)); otherwise give it a name."
        )
    if all(_is_text_of_number(column) for column in columns):
        raise InvalidInputError(f"The first row of {name} holds numbers; give it a first row of column names.")


def _is_text_of_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _npz(path: Path, target: Target) -> Dataset:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no zip archive")
    with np.load(path, allow_pickle=False) as store:
        arrays = {name: store[name] for name in store.files}
    wanted = target if target is not None else next((name for name in ("y", "labels") if name in arrays), "y")
    if not isinstance(wanted, str):
        raise InvalidInputError(f"target={target!r}: an NPZ keeps its targets in one array; name that.")
    for name in ("X", wanted):
        if name not in arrays:
            raise InvalidInputError(f"{path.name} has no array {name!r}; it has {', '.join(arrays) or 'none'}.")
    X, y = arrays["X"], arrays[wanted]
    image_shape = (int(X.shape[1]), int(X.shape[2])) if X.ndim == 3 else None
    X = X.reshape(len(X), -1) if image_shape else X
    if X.ndim != 2 or not X.size or y.ndim not in (1, 2) or len(y) != len(X):
        raise InvalidInputError(
            f"{path.name}: X has shape {arrays['X'].shape} and {wanted} {y.shape}; needed are (n, d), or (n, rows, "
            "columns) for images, and (n,) or (n, targets)."
        )
    features = pd.DataFrame(X, columns=[f"x{column}" for column in range(X.shape[1])])
    several = y.ndim == 2 and y.shape[1] > 1
    targets = [f"{wanted}{column}" for column in range(y.shape[1])] if several else [wanted]
    return _joined(path, features, pd.DataFrame(y.reshape(len(y), -1), columns=targets), image_shape)


def _h5ad(path: Path, target: Target) -> Dataset:
    try:
        import anndata
    except ImportError as error:
        raise MissingDependencyError("Reading .h5ad needs anndata: pip install 'distreduce[anndata]'.") from error
    cells = anndata.read_h5ad(path)
    columns = ", ".join(map(str, cells.obs.columns)) or "none"
    if target is None:
        raise InvalidInputError(f"{path.name}: name the column of obs to predict (target=…); it has {columns}.")
    if cells.X is None or not cells.n_obs or not cells.n_vars:
        raise InvalidInputError(f"{path.name} has no matrix X.")
    wanted = [target] if isinstance(target, str) else list(target)
    missing = [name for name in wanted if name not in cells.obs]
    if missing:
        raise InvalidInputError(f"{path.name} has no column {missing[0]!r} in obs; it has {columns}.")
    X: Any = cells.X.toarray() if hasattr(cells.X, "toarray") else cells.X
    features = pd.DataFrame(np.asarray(X), columns=[str(gene) for gene in cells.var_names])
    return _joined(path, features, cells.obs[wanted].reset_index(drop=True), None)


def _joined(path: Path, features: pd.DataFrame, targets: pd.DataFrame, image_shape: tuple[int, int] | None) -> Dataset:
    y, task, class_names = read_target(targets, path.name)
    return Dataset(
        path.name, feature_matrix(features, path.name), y, task, tuple(features.columns), tuple(targets.columns),
        class_names, image_shape,
    )  # fmt: skip

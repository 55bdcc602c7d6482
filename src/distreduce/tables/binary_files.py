"""Tables in Parquet, Excel, NPZ and h5ad files, read within a limit on memory and without unpickling."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.fixes import parse_version

from distreduce._utils.files import Arrays, allowed_bytes
from distreduce.exceptions import InvalidInputError, MissingDependencyError
from distreduce.tables.cells import empty_gaps
from distreduce.tables.header import unique_names

BATCH = 1024  # rows of a Parquet file between two checks of the memory


def read_frame(path: Path) -> pd.DataFrame:
    """Return the table of a Parquet file, or the first sheet of an Excel workbook."""
    return empty_gaps(read_excel(path) if path.suffix.lower() == ".xlsx" else read_parquet(path))


def read_excel(path: Path) -> pd.DataFrame:
    """Return the first sheet of a workbook; its first row holds the names."""
    if find_spec("openpyxl") is None:
        raise MissingDependencyError("Reading .xlsx needs openpyxl: pip install openpyxl, or save the sheet as CSV.")
    # A workbook is a zip archive of XML, which a kilobyte can make gigabytes.
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > allowed_bytes(path):
        raise ValueError(f"it would unpack to {size} bytes, more than allowed for its size")
    sheet = pd.read_excel(path, engine="openpyxl", header=None)
    if not len(sheet):
        raise InvalidInputError(f"{path.name} has no cells in its first sheet.")
    names, _ = unique_names(["" if pd.isna(cell) else str(cell).strip() for cell in sheet.iloc[0]])
    return sheet[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects()


def read_parquet(path: Path) -> pd.DataFrame:
    """Return the table of a Parquet file, read in batches: a kilobyte of it can stand for gigabytes of equal cells."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("Reading .parquet needs pyarrow: pip install 'distreduce[parquet]'.") from error
    if parse_version(pyarrow.__version__) < parse_version("14.0.1"):  # older ones can run code that a file brings
        raise MissingDependencyError(f"pyarrow {pyarrow.__version__} is not safe: pip install -U pyarrow.")
    allowed, batches, size = allowed_bytes(path), [], 0
    with pyarrow.parquet.ParquetFile(path) as file:
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
    """Return the AnnData object of a file."""
    try:
        import anndata
    except ImportError as error:
        raise MissingDependencyError("Reading .h5ad needs anndata: pip install 'distreduce[anndata]'.") from error
    return anndata.read_h5ad(path)


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
    """Return the names of the observations."""
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
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInputError(f"{where} has two columns called {name!r:.100}; {advice}.")
        seen.add(name)

"""A file of any kind as a table, whole or in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from distreduce._utils.safe_npz import read_arrays
from distreduce.datasets.columns import choose_columns
from distreduce.exceptions import InvalidInputError
from distreduce.tables import files as own_files
from distreduce.tables.text_file import TextFile

CHUNK = 20_000  # rows of a text file held at once by :func:`read_parts`


@dataclass(frozen=True)
class Table:
    """Features and targets of a file as they were written; `notes` are for the one who gave it."""

    features: pd.DataFrame
    targets: pd.DataFrame
    image_shape: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """All columns side by side."""
        return pd.concat([self.features, self.targets], axis=1)


def read_table(path: Path, targets: Sequence[str], as_text: Sequence[str] = ()) -> Table:
    """Read a file and tell targets from features.

    Parameters
    ----------
    path : Path
        .csv, .tsv, .parquet, .npz (X and an array of targets) or .h5ad (X and columns of obs).
    targets : sequence of str
        Names of the targets; may be empty for an NPZ that has ``y`` or ``labels``.
    as_text : sequence of str
        Columns of a text file that are kept as they are written.
    """
    own_files.check_file(path)
    wanted = targets[0] if len(targets) == 1 else list(targets) or None
    with own_files.damage_named(path):
        kind = path.suffix.lower()
        if kind == ".npz":
            arrays = read_arrays(path)
            features, image_shape = own_files.npz_features(arrays, path.name)
            return Table(features, own_files.npz_targets(arrays, wanted, path.name), image_shape)
        if kind == ".h5ad":
            cells = own_files.read_h5ad(path)
            if not targets:
                names = ", ".join(map(str, cells.obs.columns)) or "none"
                raise InvalidInputError(f"Name the column of obs to predict: --target COLUMN. {path.name} has {names}.")
            return Table(
                own_files.h5ad_features(cells, path.name), own_files.h5ad_targets(cells, wanted, path.name)
            )  # fmt: skip
        if kind == ".parquet":
            return _split(own_files.read_parquet(path).reset_index(drop=True), targets, path.name)
    text = TextFile.of(path)
    return _split(text.read(as_text), targets, path.name, text.notes)


def read_parts(path: Path, as_text: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
    """The columns of a file without regard to targets; a text file in parts of `CHUNK` rows."""
    own_files.check_file(path)
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        yield from TextFile.of(path).chunks(CHUNK, as_text)
        return
    with own_files.damage_named(path):
        if kind == ".npz":
            table = own_files.npz_features(read_arrays(path), path.name)[0]
        elif kind == ".h5ad":
            table = own_files.h5ad_features(own_files.read_h5ad(path), path.name)
        else:
            table = own_files.read_parquet(path)
    yield table.rename(columns=str)


def _split(table: pd.DataFrame, targets: Sequence[str], where: str, notes: tuple[str, ...] = ()) -> Table:
    table = table.rename(columns=str)
    names = ", ".join(table.columns[:30]) + (", …" if table.shape[1] > 30 else "")
    if not targets:
        raise InvalidInputError(f"Name the column of {where} to predict: --target COLUMN. It has {names}.")
    if not len(table):
        raise InvalidInputError(f"{where} has column names but no rows.")
    if table.shape[1] == 1:
        raise InvalidInputError(f"{where} has one column ({names}); features and a target are needed.")
    chosen = choose_columns(table, list(targets), where)
    return Table(table.drop(columns=chosen), table[chosen], notes=notes)

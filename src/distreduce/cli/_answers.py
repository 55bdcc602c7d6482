"""Answers to a file of new rows, part by part: a file of any length needs the memory of one part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.cli._tables import with_gaps
from distreduce.exceptions import InvalidInputError
from distreduce.tables.reading import read_chunks
from distreduce.tables.recipe import ColumnRecipe


@dataclass(frozen=True)
class Done:
    """Rows written, how many of them without an answer, and columns of the file that the fit did not know."""

    rows: int
    incomplete: int
    ignored: tuple[str, ...]


def write_answers(
    file: Path, recipe: ColumnRecipe, answer: Callable[[Array], pd.DataFrame], out: Path | TextIO
) -> Done:
    """Write ``answer(X)`` as a table with a row a row of `file`, numbered from 0."""
    rows = incomplete = 0
    ignored: tuple[str, ...] = ()
    known = {*recipe.targets, *(rule.name for rule in recipe.rules)}
    for part in read_chunks(file, recipe.as_text):
        X, complete = recipe.matrix(part, file.name)
        table = with_gaps(_answers(answer, X, complete), complete)
        table.insert(0, "row", np.arange(rows, rows + len(table)))
        table.to_csv(out, mode="a", header=rows == 0, index=False)
        rows, incomplete = rows + len(table), incomplete + int((~complete).sum())
        ignored = tuple(str(name) for name in part.columns if name not in known)
    if not rows:
        raise InvalidInputError(f"{file.name} has column names but no rows.")
    return Done(rows, incomplete, ignored)


def _answers(answer: Callable[[Array], pd.DataFrame], X: Array, complete: NDArray[np.bool_]) -> pd.DataFrame:
    """The answers to the complete rows; estimators take no empty X, so that one row stands in to name the columns."""
    return answer(X[complete]) if complete.any() else answer(np.zeros((1, X.shape[1]))).iloc[:0]

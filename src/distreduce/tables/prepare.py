"""From a file to X and y, with everything that was decided on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.text import list_words
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.tables.reading import read_table
from distreduce.tables.recipe import ColumnRecipe, learn_recipe
from distreduce.tables.target import Target, read_target


@dataclass(frozen=True)
class PreparedTable:
    """A file ready for the estimators.

    Attributes
    ----------
    table : DataFrame
        The rows as written, targets last.
    recipe : ColumnRecipe
    target : Target
    X : (n, d) array
        All rows; NaN in those that are not `usable`.
    usable : (n,) array of bool
        Rows without missing cells (or with these filled) and, if asked for, with a target.
    notes : tuple of str
        What the user should know.
    """

    table: pd.DataFrame
    recipe: ColumnRecipe
    target: Target
    X: Array
    usable: NDArray[np.bool_]
    notes: tuple[str, ...]


def prepare(
    path: Path,
    targets: Sequence[str],
    *,
    task: str = "auto",
    missing: str = "refuse",
    unlabelled: str = "keep",
    categories: Sequence[str] = (),
    leave_out: Sequence[str] = (),
) -> PreparedTable:
    """Read a file, guess the kinds of its columns, and build X and y; see ``distreduce fit --help``."""
    table = read_table(path, targets, categories)
    target = read_target(table.targets, task, path.name)
    labelled = target.known if unlabelled == "drop" else np.ones(len(table.features), dtype=bool)
    recipe = learn_recipe(
        table.features, target.names, target.task, path.name, rows=labelled, missing=missing, categories=categories,
        leave_out=leave_out, image_shape=table.image_shape,
    )  # fmt: skip
    # Rows that are left out stay in X as NaN, so that its rows are those of the file.
    X = np.full((len(labelled), len(recipe.columns)), np.nan)
    usable = labelled.copy()
    X[labelled], usable[labelled] = recipe.matrix(table.features[labelled], path.name)
    if (usable & target.known).sum() < 2:
        raise InvalidInputError(f"{path.name} has fewer than two rows that are complete and have a target.")
    return PreparedTable(table.frame, recipe, target, X, usable, (*table.notes, *_notes(target, labelled, usable)))


def _notes(target: Target, labelled: NDArray[np.bool_], usable: NDArray[np.bool_]) -> list[str]:
    notes = []
    unknown, incomplete = int((~target.known).sum()), int((labelled & ~usable).sum())
    if incomplete:
        notes.append(f"{incomplete} rows with missing values are left out.")
    if unknown:
        fate = "help to draw the picture" if labelled.all() else "are left out"
        words = f" ({list_words(target.unknown_words)} among the numbers say so)" if target.unknown_words else ""
        notes.append(f"{unknown} rows have no target{words}; they {fate}.")
    if target.task == "classification":
        counts = target.y.value_counts()
        rare = sorted(counts.index[counts == 1].tolist())  # cannot be in both parts of a split
        if rare:
            notes.append(
                f"A single row has the class {list_words(rare)}: it is in the fit, so held-out scores do not cover it."
            )
    return notes

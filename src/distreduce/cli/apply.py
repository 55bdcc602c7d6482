"""``distreduce transform | predict``: apply the models of a folder that ``distreduce fit`` wrote to new rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from distreduce._utils.text import count_of, list_words
from distreduce._utils.typing import Array
from distreduce.cli._folder import Folder
from distreduce.cli._tables import add_incomplete_rows, place_table, prediction_table
from distreduce.exceptions import InvalidInputError
from distreduce.tables.output import is_standard, whole_file
from distreduce.tables.reading import read_chunks
from distreduce.tables.recipe import ColumnRecipe

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder that `distreduce fit` wrote.", show_default=False)
]
New = Annotated[Path, typer.Argument(metavar="FILE", help="New rows, with the columns of the fit.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Table to write; - is standard output.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]

# Answers to some rows of X as a table.
Answer = Callable[[Array], pd.DataFrame]


def transform(
    folder: Directory, file: New, out: Out = Path("embedding.csv"), overwrite: Overwrite = False, quiet: Quiet = False
) -> None:
    """Place new rows in the picture: the place of each row and the prototype nearest to that place.

    Columns are matched by name, in any order. Other columns are ignored,
    a missing one is an error. Levels that the fit did not know count as "other",
    or as none of the levels if the fit had no "other".
    """
    results = Folder.open(folder)
    recipe = results.recipe()
    model = results.model(recipe)
    _apply(file, recipe, lambda X: place_table(model, model.transform(X)), out, overwrite, quiet)


def predict(
    folder: Directory, file: New, out: Out = Path("predictions.csv"), overwrite: Overwrite = False, quiet: Quiet = False
) -> None:
    """Predict new rows: mean, standard deviation and 5, 50, 95 % quantiles; or class and probabilities.

    Columns are matched by name, in any order. Other columns are ignored,
    a missing one is an error. Levels that the fit did not know count as "other",
    or as none of the levels if the fit had no "other".
    """
    results = Folder.open(folder)
    recipe = results.recipe()
    predictor = results.predictor(recipe)
    _apply(file, recipe, lambda X: prediction_table(predictor, X, recipe.targets), out, overwrite, quiet)


def _apply(file: Path, recipe: ColumnRecipe, answer: Answer, out: Path, overwrite: bool, quiet: bool) -> None:
    """Write ``answer(X)`` with one row per row of `file`, numbered from 0.

    The file is read in chunks, so a file of any length needs the memory of one chunk.
    """
    n_rows = n_incomplete = 0
    ignored: list[str] = []
    known = {*recipe.targets, *(rule.name for rule in recipe.rules)}  # a target in the new file is not worth a message
    with whole_file(out, overwrite=overwrite) as place:
        for part in read_chunks(file, recipe.as_text):
            X, complete = recipe.matrix(part, file.name)
            # Estimators reject an empty X: one row stands in to name the columns.
            found = answer(X[complete]) if complete.any() else answer(np.zeros((1, X.shape[1]))).iloc[:0]
            table = add_incomplete_rows(found, complete)
            table.insert(0, "row", np.arange(n_rows, n_rows + len(table)))
            table.to_csv(place, mode="a", header=n_rows == 0, index=False)
            n_rows, n_incomplete = n_rows + len(table), n_incomplete + int((~complete).sum())
            ignored = [str(name) for name in part.columns if name not in known]
        if not n_rows:
            raise InvalidInputError(f"{file.name} has column names but no rows.")
    if quiet:
        return
    beside = is_standard(out)  # messages must not get into the table
    if ignored:
        typer.echo(f"Ignored columns that the fit did not have: {list_words(ignored)}", err=beside)
    if n_incomplete:
        typer.echo(f"Left empty because of missing values: {count_of(n_incomplete, 'row')}", err=beside)
    typer.echo(f"Wrote {count_of(n_rows, 'row')} to {out}", err=beside)

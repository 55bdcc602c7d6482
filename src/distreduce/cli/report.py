"""``distreduce report``: the page of a fit, written by ``fit`` and again from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from distreduce._utils.hashing import file_sha256
from distreduce._utils.typing import Array
from distreduce.cli._models import describe_models
from distreduce.cli._names import REPORT
from distreduce.cli._screen import EXPERT_NAMES, count_rows
from distreduce.cli._tables import read_held_out
from distreduce.cli.apply import Directory, Quiet
from distreduce.cli.fitted_folder import Folder
from distreduce.estimators import SDR
from distreduce.exceptions import InvalidInputError, ModelFileError
from distreduce.report import write_report
from distreduce.tables.aside import read_weights
from distreduce.tables.formats import TextLayout, check_file
from distreduce.tables.reading import read_table
from distreduce.tables.recipe import ColumnRecipe
from distreduce.tables.target import Target, read_target


def report(
    folder: Directory,
    data: Annotated[Path | None, typer.Option(help="The fitted file, if it has been moved since the fit.")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write report.html of a fit again; its rows are read from the fitted file."""
    path = folder / REPORT
    with count_rows(silent=quiet):
        _rewrite_page(Folder._open(folder), path, data)
    if not quiet:
        typer.echo(f"Wrote {path}")
    if open_it:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())


def write_page(
    path: Path,
    model: SDR,
    X: Array,
    target: Target,
    table: pd.DataFrame,
    held_out: pd.DataFrame | None,
    *,
    recipe: ColumnRecipe,
    experts: Mapping[str, float],
    title: str,
    **options: Any,
) -> None:
    """Write the page of the rows of the fit; `held_out` is held_out.csv, and `options` are those of write_report."""
    about, image_shape = describe_models(target.task), recipe.image_shape
    write_report(
        path, model, X, target.y, recipe=None if image_shape else recipe,
        table=None if image_shape else table.reset_index(drop=True),  # one column per pixel would help nobody
        held_out=None if held_out is None else read_held_out(held_out, target, about),
        experts={EXPERT_NAMES.get(name, name): weight for name, weight in experts.items()},
        image_shape=image_shape, title=f"{', '.join(target.names)}, from {title}", **options,
    )  # fmt: skip


def _rewrite_page(folder: Folder, path: Path, moved_to: Path | None) -> None:
    """Write the page from the folder and the fitted file, which must not have changed."""
    # The folder.
    recipe, source, model = folder.recipe, folder.source(), folder.model
    rows = folder.fit_rows()
    # The fitted file, byte for byte: other rows would be shown under the old numbers.
    file = moved_to or Path(source.file)
    check_file(file)
    if file_sha256(file) != source.sha256:
        raise InvalidInputError(f"{file} is not the file that was fitted: its content has changed. Fit again.")
    layout = TextLayout(source.separator, source.named)
    table = read_table(file, source.targets, recipe.as_text, layout=layout, id_column=recipe.id_column)
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(table.features):
        raise ModelFileError(f"The tables in {folder.path} do not belong to {file}; fit again.")
    weights = folder.choice("weights")
    if weights is not None and weights not in table.frame:
        raise ModelFileError(f"{file} has no column {weights!r}, which the fit took its weights from; fit again.")
    # The rows of the fit, in its order.
    X, _ = recipe.matrix(table.features.iloc[rows], file.name)
    target = read_target(table.targets, source.task, file.name).rows(rows)
    write_page(
        path, model, X, target, table.frame.iloc[rows], folder.held_out(recipe.task or "auto"),
        recipe=recipe, predictor=folder.predictor if folder._has_predictor else None,
        experts=folder.experts(), row_numbers=rows, title=file.name, command=source.command, notes=folder.notes(),
        split=folder.split(), within=folder.within(), n_rows=len(table.frame),
        sample_weight=None if weights is None else read_weights(table.frame[weights])[rows],
    )  # fmt: skip

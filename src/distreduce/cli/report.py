"""``distreduce report``: the page of a fit, written by ``fit`` and again from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from distreduce._utils.hashing import file_sha256
from distreduce._utils.typing import Array, Index
from distreduce.cli._folder import Folder
from distreduce.cli._models import describe_models
from distreduce.cli._names import REPORT
from distreduce.cli._screen import EXPERT_NAMES, count_rows
from distreduce.cli._tables import DENSITY, LEVEL, PROBABILITY, SCALE, TRUTH, WEIGHT, target_suffixes, truth_columns
from distreduce.cli.apply import Directory, Quiet
from distreduce.estimators import SDR
from distreduce.exceptions import InvalidInputError, ModelFileError
from distreduce.report import HeldOut, HeldOutClasses, write_report
from distreduce.tables.aside import read_weights
from distreduce.tables.formats import TextLayout, check_file
from distreduce.tables.reading import read_table
from distreduce.tables.recipe import ColumnRecipe
from distreduce.tables.target import Target, read_target

PREDICTED = {"mean": "mean", "std": "std", "low": "q05", "high": "q95", "levels": LEVEL, "scale": SCALE,
             "log_density": DENSITY}  # fmt: skip


def report(
    folder: Directory,
    data: Annotated[
        Path | None, typer.Option(help="The fitted file, if it has been moved since the fit.", show_default=False)
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write report.html of a fit again; its rows are read from the fitted file."""
    path = folder / REPORT
    with count_rows(silent=quiet):
        _rewrite_page(Folder.open(folder), path, data)
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
    predictor: Any,
    experts: Mapping[str, float],
    row_numbers: Index,
    title: str,
    command: str,
    notes: Sequence[str],
    split: str,
    within: str,
    weights: Array | None,
) -> None:
    """Write the page of the rows of the fit, which have these numbers in the file; `held_out` is held_out.csv."""
    about, image_shape = describe_models(target.task), recipe.image_shape
    write_report(
        path, model, X, target.y, recipe=None if image_shape else recipe, predictor=predictor,
        table=None if image_shape else table.reset_index(drop=True),  # one column per pixel would help nobody
        row_numbers=row_numbers,
        held_out=None if held_out is None else _split_by_model(held_out, target, about),
        experts={EXPERT_NAMES.get(name, name): weight for name, weight in experts.items()},
        image_shape=image_shape, title=f"{', '.join(target.names)}, from {title}", command=command,
        notes=notes, split=split, within=within, sample_weight=weights,
    )  # fmt: skip


def _rewrite_page(folder: Folder, path: Path, moved_to: Path | None) -> None:
    """Write the page from the folder and the fitted file, which must not have changed."""
    # The folder.
    recipe, source = folder.recipe(), folder.source()
    model = folder.model(recipe)
    rows = folder.fit_rows(model)
    # The fitted file, byte for byte: other rows would be shown under the old numbers.
    file = moved_to or Path(source.file)
    check_file(file)
    if file_sha256(file) != source.sha256:
        raise InvalidInputError(f"{file} is not the file that was fitted: its content has changed. Fit again.")
    table = read_table(
        file,
        source.targets,
        recipe.as_text,
        layout=TextLayout(source.separator, source.named),
        id_column=recipe.id_column,
    )
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(table.features):
        raise ModelFileError(f"The tables in {folder.path} do not belong to {file}; fit again.")
    weights = folder.weights()
    if weights is not None and weights not in table.frame:
        raise ModelFileError(f"{file} has no column {weights!r}, which the fit took its weights from; fit again.")
    # The rows of the fit, in its order.
    X, _ = recipe.matrix(table.features.iloc[rows], file.name)
    target = read_target(table.targets, source.task or recipe.task or "auto", file.name).rows(rows)
    write_page(
        path, model, X, target, table.frame.iloc[rows], folder.held_out(recipe.task or "auto"),
        recipe=recipe, predictor=folder.predictor(recipe) if folder.has_predictor else None,
        experts=folder.experts(), row_numbers=rows, title=file.name, command=source.command, notes=folder.notes(),
        split=folder.split(), within=folder.within(),
        weights=None if weights is None else read_weights(table.frame[weights])[rows],
    )  # fmt: skip


def _split_by_model(table: pd.DataFrame, target: Target, about: dict[str, str]) -> dict[str, Any]:
    # held_out.csv lies in the user's folder and may have been edited.
    missing = [name for name in truth_columns(target.names) if name not in table]
    if missing:
        raise ModelFileError(f"The table of held-out predictions has no column {missing[0]!r}; fit again.")
    make = _read_classes if target.task == "classification" else _read_numbers
    try:
        return {
            str(name): make(part, target, about.get(str(name), ""))
            for name, part in table.groupby("model", sort=False)
        }  # fmt: skip
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(
            f"The table of held-out predictions cannot be used ({error!s:.200}); fit again."
        ) from error


def _read_numbers(part: pd.DataFrame, target: Target, about: str) -> HeldOut:
    """Levels are empty for a model without its own quantiles; older folders have neither levels nor scales."""
    shape = (len(part), len(target.names)) if len(target.names) > 1 else (len(part),)
    found: dict[str, Any] = {}
    for field, name in PREDICTED.items():
        columns = [name + end for end in target_suffixes(target.names)]
        if field in ("mean", "std") or (set(columns) <= set(part) and part[columns].notna().any(axis=None)):
            found[field] = part[columns].to_numpy(dtype=np.float64).reshape(shape)
    if "scale" in found:
        found["scale"] = found["scale"][0]  # the same in every row
    truth = part[truth_columns(target.names)].astype(np.float64).set_axis(target.names, axis=1)
    y = truth if len(target.names) > 1 else truth.to_numpy()[:, 0]
    return HeldOut(y, **found, about=about, sample_weight=_read_weights(part))


def _read_classes(part: pd.DataFrame, target: Target, about: str) -> HeldOutClasses:
    """Labels are read as text: a file does not say whether 1 was a number."""
    # Models may know different classes: those that this one lacks are empty cells.
    columns = [name for name in part if str(name).startswith(PROBABILITY) and part[name].notna().all()]
    classes = np.array([str(name)[len(PROBABILITY) :] for name in columns])
    truth = part[TRUTH].astype(str).to_numpy(dtype=str)
    return HeldOutClasses(truth, part[columns].to_numpy(), classes, about, _read_weights(part))


def _read_weights(part: pd.DataFrame) -> Array | None:
    return part[WEIGHT].to_numpy(dtype=np.float64) if WEIGHT in part else None

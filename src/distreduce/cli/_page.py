"""report.html from what a fit left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from distreduce._utils.hashing import file_sha256
from distreduce._utils.typing import Array
from distreduce.cli._folder import Folder
from distreduce.cli._tables import LEVEL, PROBABILITY, SCALE, TRUTH, named, truth_columns
from distreduce.estimators import SDR
from distreduce.exceptions import InvalidInputError, ModelFileError
from distreduce.report import HeldOut, HeldOutClasses, write_report
from distreduce.tables.reading import check_file, read_table
from distreduce.tables.target import Target, read_target

PREDICTED = {"mean": "mean", "std": "std", "low": "q05", "high": "q95", "levels": LEVEL, "scale": SCALE}


def write_page(
    path: Path,
    model: SDR,
    X: Array,
    target: Target,
    table: pd.DataFrame,
    held_out: pd.DataFrame | None,
    *,
    row_numbers: NDArray[np.intp],
    image_shape: tuple[int, int] | None,
    title: str,
    command: str,
) -> None:
    """The page of the rows of the fit, which have these numbers in the file; `held_out` is that of held_out.csv."""
    parts = None if held_out is None else _by_model(held_out, target)
    # A column a pixel would be of no use to anybody.
    rows = None if image_shape else table.reset_index(drop=True)
    write_report(
        path, model, X, target.y, table=rows, row_numbers=row_numbers, held_out=parts, image_shape=image_shape,
        title=title, command=command,
    )  # fmt: skip


def rebuild_page(folder: Folder, path: Path, moved_to: Path | None) -> None:
    """The page again, from the folder and the file that was fitted, which must be as it was."""
    recipe, source = folder.recipe(), folder.source()
    model = folder.model(recipe)
    rows = folder.fit_rows(model)
    file = moved_to or Path(source.file)
    check_file(file)
    if file_sha256(file) != source.sha256:
        raise InvalidInputError(f"{file} is not the file that was fitted: its content is another. Fit again.")
    table = read_table(file, source.targets, recipe.as_text)
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(table.features):
        raise ModelFileError(f"The tables in {folder.path} do not belong to {file}; fit again.")
    X, _ = recipe.matrix(table.features.iloc[rows], file.name)
    target = read_target(table.targets, source.task or recipe.task, file.name).rows(rows)
    write_page(
        path, model, X, target, table.frame.iloc[rows], folder.held_out(recipe.task),
        row_numbers=rows, image_shape=recipe.image_shape, title=file.name, command=source.command,
    )  # fmt: skip


def _by_model(table: pd.DataFrame, target: Target) -> dict[str, Any]:
    lacking = [name for name in truth_columns(target.names) if name not in table]
    if lacking:
        raise ModelFileError(f"The table of held-out predictions has no column {lacking[0]!r}; fit again.")
    make = _classes if target.task == "classification" else _numbers
    try:
        return {str(name): make(part, target) for name, part in table.groupby("model", sort=False)}
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(
            f"The table of held-out predictions cannot be used ({error!s:.200}); fit again."
        ) from error


def _numbers(part: pd.DataFrame, target: Target) -> HeldOut:
    """Levels are empty for a model without quantiles of its own; older folders have neither them nor scales."""
    chosen = {field: [name + end for end in named(target.names)] for field, name in PREDICTED.items()}
    found = {
        field: part[columns].to_numpy(dtype=np.float64).reshape(len(part), *_targets(target))
        for field, columns in chosen.items()
        if field in ("mean", "std") or (set(columns) <= set(part) and part[columns].notna().any(axis=None))
    }
    if "scale" in found:
        found["scale"] = found["scale"][0]
    truth = part[truth_columns(target.names)].astype(np.float64).set_axis(target.names, axis=1)
    return HeldOut(truth if len(target.names) > 1 else truth.to_numpy()[:, 0], **found)


def _targets(target: Target) -> tuple[int, ...]:
    return (len(target.names),) if len(target.names) > 1 else ()


def _classes(part: pd.DataFrame, target: Target) -> HeldOutClasses:
    """Labels as text: a file does not say whether 1 was a number."""
    columns = [name for name in part if str(name).startswith(PROBABILITY) and part[name].notna().all()]
    classes = np.array([str(name)[len(PROBABILITY) :] for name in columns])
    return HeldOutClasses(part[TRUTH].astype(str).to_numpy(dtype=str), part[columns].to_numpy(), classes)

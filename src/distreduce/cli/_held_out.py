"""The table of held-out predictions, held_out.csv, as scores and the page take it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from distreduce._utils.typing import Array
from distreduce.cli import _tables
from distreduce.exceptions import ModelFileError
from distreduce.report import HeldOut, HeldOutClasses
from distreduce.tables.target import Target

PREDICTED = {"mean": "mean", "std": "std", "low": "q05", "high": "q95"}
PREDICTED |= {"levels": _tables.LEVEL, "scale": _tables.SCALE, "log_density": _tables.DENSITY}


def read_held_out(table: pd.DataFrame, target: Target, about: dict[str, str]) -> dict[str, Any]:
    """Return the predictions of each model; the file lies in the user's folder and may have been edited."""
    missing = [name for name in _tables.truth_columns(target.names) if name not in table]
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
        columns = [name + end for end in _tables.target_suffixes(target.names)]
        if field in ("mean", "std") or (set(columns) <= set(part) and part[columns].notna().any(axis=None)):
            found[field] = part[columns].to_numpy(dtype=np.float64).reshape(shape)
    if "scale" in found:
        found["scale"] = found["scale"][0]  # the same in every row
    truth = part[_tables.truth_columns(target.names)].astype(np.float64).set_axis(target.names, axis=1)
    y = truth if len(target.names) > 1 else truth.to_numpy()[:, 0]
    return HeldOut(y, **found, about=about, **_read_aside(part))


def _read_classes(part: pd.DataFrame, target: Target, about: str) -> HeldOutClasses:
    """Labels are read as text: a file does not say whether 1 was a number."""
    # Models may know different classes: those that this one lacks are empty cells.
    columns = [name for name in part if str(name).startswith(_tables.PROBABILITY) and part[name].notna().all()]
    classes = np.array([str(name)[len(_tables.PROBABILITY) :] for name in columns])
    truth = part[_tables.TRUTH].astype(str).to_numpy(dtype=str)
    return HeldOutClasses(truth, part[columns].to_numpy(), classes, about, **_read_aside(part))


def _read_aside(part: pd.DataFrame) -> dict[str, Array]:
    """Return weights, and which rows are not independent, as far as the table has them."""
    names = {"sample_weight": _tables.WEIGHT, "groups": _tables.GROUP}
    return {field: part[name].to_numpy(dtype=np.float64) for field, name in names.items() if name in part}

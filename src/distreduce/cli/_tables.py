"""The tables that ``fit``, ``transform`` and ``predict`` write, and held_out.csv as scores and the page take it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from distreduce._utils.numerics import nearest_in_use
from distreduce._utils.typing import Array, Index, Mask
from distreduce.estimators import SDR
from distreduce.exceptions import ModelFileError
from distreduce.plotting.targets import sample_places
from distreduce.report import HeldOut, HeldOutClasses
from distreduce.tables.findings import NOVEL, Findings
from distreduce.tables.prepare import PreparedTable
from distreduce.tables.recipe import ColumnRecipe
from distreduce.tables.target import Target

QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
PROBABILITY = "probability of "
CLASS, TRUTH, FITTED = "class", "true", "fitted"
SCALE, LEVEL, DENSITY, WEIGHT, GROUP = "scale", "level", "log density", "weight", "group"
NOVELTY = "novelty"
FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with its apostrophes, so that the escape can be undone


def write_table(table: pd.DataFrame, place: Any, *, raw: bool = False, **options: Any) -> None:
    """Write a table as CSV; unless `raw`, texts that a spreadsheet would run as a formula begin with an apostrophe."""
    if not raw:
        table = table.rename(columns=escape_formula)
        for name in table.select_dtypes(["object", "string", "category"]):
            # As objects: 3 must not become 3.0 beside a fraction.
            table[name] = pd.Series([escape_formula(cell) for cell in table[name]], dtype=object).to_numpy()
    table.to_csv(place, index=False, **options)


def escape_formula(cell: Any) -> Any:
    """Return text that begins with = + - @ behind an apostrophe; numbers stay as they are."""
    if not isinstance(cell, str) or not FORMULA.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def unescape_formula(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def truth_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of the true targets: not the user's own names, which other columns may have."""
    return [f"{TRUTH} {name}" for name in names] if len(names) > 1 else [TRUTH]


def truth_table(target: Target, rows: Index) -> pd.DataFrame:
    return pd.DataFrame(target.y.iloc[rows]).reset_index(drop=True).set_axis(truth_columns(target.names), axis=1)


def target_suffixes(names: Sequence[str]) -> list[str]:
    """Return what follows the name of a column that exists once per target: nothing if there is one target."""
    return [f" of {name}" for name in names] if len(names) > 1 else [""]


def prediction_table(
    predictor: Any, X: Array, recipe: ColumnRecipe, coverage: float | None = None, per_class: bool = False
) -> pd.DataFrame:
    """Return the predictions for the rows of X, with conformal intervals or sets of classes if `coverage` is given.

    The last column, `novelty`, is a p-value for "this row is like those of the fit".
    """
    names = recipe.targets
    if hasattr(predictor, "predict_proba"):
        table = class_table(predictor.predict_proba(X), predictor.classes_)
        if coverage is not None:
            inside = predictor.predict_set(X, coverage, per_class)
            table[f"{coverage:.0%} set"] = [" | ".join(map(str, predictor.classes_[row])) for row in inside]
    else:
        table = number_table(predictor, X, names)
        if coverage is not None:
            ends = predictor.predict_interval(X, coverage, method="conformal").reshape(len(X), -1, 2)
            for target, of in enumerate(target_suffixes(names)):
                table[f"{coverage:.0%} low{of}"], table[f"{coverage:.0%} high{of}"] = ends[:, target].T
    if hasattr(predictor, "novelty_"):
        table[NOVELTY] = np.minimum(predictor.novelty(X), recipe.level_novelty(X, predictor.novelty_.inputs))
    return table


def class_table(proba: Array, classes: NDArray[Any]) -> pd.DataFrame:
    """Return the most probable class and the probability of each class."""
    shares = {f"{PROBABILITY}{label}": column for label, column in zip(classes, proba.T, strict=True)}
    return pd.DataFrame({CLASS: classes[proba.argmax(axis=1)], **shares})


def number_table(predictor: Any, X: Array, names: Sequence[str]) -> pd.DataFrame:
    """Return mean, standard deviation and quantiles; with several targets each column carries the target's name."""
    mean, std = (part.reshape(len(X), -1) for part in predictor.predict(X, return_std=True))
    levels = list(QUANTILES.values())
    if hasattr(predictor, "predict_quantiles"):
        quantiles = predictor.predict_quantiles(X, levels).reshape(*mean.shape, len(levels))
    else:  # those of a Gaussian
        quantiles = mean[..., None] + std[..., None] * norm.ppf(levels)
    columns = {}
    for target, of in enumerate(target_suffixes(names)):
        columns[f"mean{of}"], columns[f"std{of}"] = mean[:, target], std[:, target]
        columns |= {quantile + of: quantiles[:, target, k] for k, quantile in enumerate(QUANTILES)}
    return pd.DataFrame(columns)


def judgement_table(n: int, scale: Array, own: Mapping[str, Array], names: Sequence[str]) -> pd.DataFrame:
    """Return what scores need besides: the unit of each target, and what `judge_numbers` says of the truth."""
    suffixes = target_suffixes(names)
    columns = {f"{SCALE}{of}": np.full(n, unit) for of, unit in zip(suffixes, np.atleast_1d(scale), strict=True)}
    for name, column in (("levels", LEVEL), ("log_density", DENSITY)):
        if name in own:
            columns |= {f"{column}{of}": part for of, part in zip(suffixes, own[name].reshape(n, -1).T, strict=True)}
    return pd.DataFrame(columns)


def place_table(model: SDR, Z: Array) -> pd.DataFrame:
    """Return the nearest prototype in use, and the place itself."""
    nearest = nearest_in_use(Z, model.prototypes_, model.prototype_weights_)
    return pd.DataFrame({"prototype": nearest, **dict(zip(model.get_feature_names_out(), Z.T, strict=True))})


def answer_rows(
    recipe: ColumnRecipe, table: pd.DataFrame, where: str, findings: Findings, answer: Callable[[Array], pd.DataFrame]
) -> tuple[pd.DataFrame, Mask]:
    """Return ``answer(X)`` with one row per row of the table, empty where cells are missing, and which are complete."""
    X, complete = recipe.matrix(table, where, findings)
    # Estimators reject an empty X: one row stands in to name the columns.
    found = answer(X[complete]) if complete.any() else answer(np.zeros((1, X.shape[1]))).iloc[:0]
    if NOVELTY in found:
        findings.novel += int((found[NOVELTY] < NOVEL).sum())
    return add_incomplete_rows(found, complete), complete


def name_rows(table: pd.DataFrame, file: pd.DataFrame, id_column: str | None) -> pd.DataFrame:
    """Return the table with the names of its rows, taken from the file, behind the column "row"."""
    if id_column is None or id_column not in file:
        return table
    heading = f"id {id_column}" if id_column in table else id_column  # such as an id called "row"
    names = file[id_column].loc[table["row"]].to_numpy()
    at = table.columns.get_loc("row") + 1
    return pd.concat([table.iloc[:, :at], pd.Series(names, table.index, name=heading), table.iloc[:, at:]], axis=1)


def add_incomplete_rows(table: pd.DataFrame, complete: Mask) -> pd.DataFrame:
    """Return the table of the complete rows as one of all rows, with empty cells for the others."""
    # Int64 has missing values; int64 with gaps would become 3.0 in the file.
    whole = table.set_axis(np.flatnonzero(complete)).reindex(np.arange(len(complete)))
    return whole.astype({name: "Int64" for name in ("prototype", f"{FITTED} prototype") if name in whole})


def embedding_table(model: SDR, data: PreparedTable, fit_rows: Index) -> pd.DataFrame:
    """Return one row per row of the file: its part (fit, placed or omitted), target, prototype and place.

    A row of the fit lies where it would had it not been in the fit; columns that begin with "fitted" hold its place and
    its prototype as fitted. A placed row has not been in the fit, so both are the place that the map gives it.
    """
    placed = data.usable.copy()
    placed[fit_rows] = False
    fitted = np.empty((len(placed), model.prototypes_.shape[1]))
    fitted[fit_rows] = model.embedding_
    if placed.any():
        fitted[placed] = model.transform(data.X[placed])
    Z = fitted.copy()
    Z[fit_rows] = sample_places(model, "left_out")
    believed = place_table(model, fitted[data.usable])
    believed.loc[np.isin(np.flatnonzero(data.usable), fit_rows), "prototype"] = model.labels_  # the coupling's choice
    both = place_table(model, Z[data.usable]).join(believed.add_prefix(f"{FITTED} "))
    table = add_incomplete_rows(both, data.usable)
    part = np.where(placed, "placed", "omitted").astype(object)
    part[fit_rows] = "fit"
    front = name_rows(pd.DataFrame({"row": np.arange(len(placed)), "part": part}), data.table, data.recipe.id_column)
    targets = pd.DataFrame(data.target.y).reset_index(drop=True)
    # A target called "row" or "part" must not share a heading with our own columns.
    taken = {*front.columns, *table.columns}
    targets.columns = [f"{TRUTH} {name}" if name in taken else name for name in data.target.names]
    return pd.concat([front, targets, table], axis=1)


def prototype_table(model: SDR, data: PreparedTable, fit_rows: Index) -> pd.DataFrame:
    """Return the summary of the model, and the row of the file that is the medoid of each prototype."""
    summary = model.summary().reset_index()
    summary["medoid"] = fit_rows[summary["medoid"]]
    medoids = data.table.iloc[summary["medoid"]].add_prefix("medoid ").reset_index(drop=True)
    return pd.concat([summary, medoids], axis=1)


PREDICTED = {"mean": "mean", "std": "std", "low": "q05", "high": "q95"}
PREDICTED |= {"levels": LEVEL, "scale": SCALE, "log_density": DENSITY}


def read_held_out(table: pd.DataFrame, target: Target, about: dict[str, str]) -> dict[str, Any]:
    """Return the predictions of each model; the file lies in the user's folder and may have been edited."""
    missing = [name for name in truth_columns(target.names) if name not in table]
    if missing:
        raise ModelFileError(f"The table of held-out predictions has no column {missing[0]!r}; fit again.")
    make = _read_classes if target.task == "classification" else _read_numbers
    try:
        parts = table.groupby("model", sort=False)
        return {str(name): make(part, target, about.get(str(name), "")) for name, part in parts}
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"The held-out predictions cannot be used ({error!s:.200}); fit again.") from error


def _read_numbers(part: pd.DataFrame, target: Target, about: str) -> HeldOut:
    """Levels are empty for a model without its own quantiles."""
    shape = (len(part), len(target.names)) if len(target.names) > 1 else (len(part),)
    found: dict[str, Any] = {}
    for field, name in PREDICTED.items():
        columns = [name + end for end in target_suffixes(target.names)]
        if field in ("mean", "std") or part[columns].notna().any(axis=None):
            found[field] = part[columns].to_numpy(dtype=np.float64).reshape(shape)
    if "scale" in found:
        found["scale"] = found["scale"][0]  # the same in every row
    truth = part[truth_columns(target.names)].astype(np.float64).set_axis(target.names, axis=1)
    y = truth if len(target.names) > 1 else truth.to_numpy()[:, 0]
    return HeldOut(y, **found, about=about, **_read_aside(part))


def _read_classes(part: pd.DataFrame, target: Target, about: str) -> HeldOutClasses:
    """Labels are read as text: a file does not say whether 1 was a number."""
    # Models may know different classes: those that this one lacks are empty cells.
    columns = [name for name in part if str(name).startswith(PROBABILITY) and part[name].notna().all()]
    classes = np.array([str(name)[len(PROBABILITY) :] for name in columns])
    truth = part[TRUTH].astype(str).to_numpy(dtype=str)
    return HeldOutClasses(truth, part[columns].to_numpy(), classes, about, **_read_aside(part))


def _read_aside(part: pd.DataFrame) -> dict[str, Array]:
    """Return weights, and which rows are not independent, as far as the table has them."""
    names = {"sample_weight": WEIGHT, "groups": GROUP}
    return {field: part[name].to_numpy(dtype=np.float64) for field, name in names.items() if name in part}

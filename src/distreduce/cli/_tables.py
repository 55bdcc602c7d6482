"""The tables that ``fit``, ``transform`` and ``predict`` write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.metrics import pairwise_distances_argmin

from distreduce._utils.typing import Array
from distreduce.estimators import SDR
from distreduce.tables.prepare import PreparedTable

QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
PROBABILITY = "probability of "
CLASS, TRUTH = "class", "true"
SCALE, LEVEL = "scale", "level"


def truth_columns(names: Sequence[str]) -> list[str]:
    """Columns of the true targets: not the user's own names, which may be those of other columns of the table."""
    return [f"{TRUTH} {name}" for name in names] if len(names) > 1 else [TRUTH]


def named(names: Sequence[str]) -> list[str]:
    """What follows the name of a column that there is one of for each target: nothing if there is one target."""
    return [f" of {name}" for name in names] if len(names) > 1 else [""]


def number_table(predictor: Any, X: Array, names: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and quantiles; of several targets each column carries the target's name."""
    columns = {}
    mean, std = (part.reshape(len(X), -1) for part in predictor.predict(X, return_std=True))
    quantiles = _quantiles(predictor, X, mean, std)
    for target, of in enumerate(named(names)):
        columns[f"mean{of}"], columns[f"std{of}"] = mean[:, target], std[:, target]
        columns |= {quantile + of: quantiles[:, target, k] for k, quantile in enumerate(QUANTILES)}
    return pd.DataFrame(columns)


def judged_table(n: int, scale: Array, levels: Array | None, names: Sequence[str]) -> pd.DataFrame:
    """What scores need besides: the unit of each target and, of own quantiles, the levels that hold the truth."""
    columns = {f"{SCALE}{of}": np.full(n, unit) for of, unit in zip(named(names), np.atleast_1d(scale), strict=True)}
    if levels is not None:
        columns |= {f"{LEVEL}{of}": part for of, part in zip(named(names), levels.reshape(n, -1).T, strict=True)}
    return pd.DataFrame(columns)


def _quantiles(predictor: Any, X: Array, mean: Array, std: Array) -> Array:
    """Those of the predictor (rows, targets, levels), or of a Gaussian where it has none of its own."""
    levels = list(QUANTILES.values())
    if not hasattr(predictor, "predict_quantiles"):
        return np.asarray(mean[..., None] + std[..., None] * norm.ppf(levels))
    return np.asarray(predictor.predict_quantiles(X, levels).reshape(*mean.shape, len(levels)))


def class_table(proba: Array, classes: NDArray[Any]) -> pd.DataFrame:
    """Most probable class, and the probability of each."""
    shares = {f"{PROBABILITY}{label}": column for label, column in zip(classes, proba.T, strict=True)}
    return pd.DataFrame({CLASS: classes[proba.argmax(axis=1)], **shares})


def predictions(predictor: Any, X: Array, names: Sequence[str]) -> pd.DataFrame:
    """What the predictor says about the rows of X."""
    if hasattr(predictor, "predict_proba"):
        return class_table(predictor.predict_proba(X), predictor.classes_)
    return number_table(predictor, X, names)


def places(model: SDR, Z: Array) -> pd.DataFrame:
    """The nearest prototype that stands for something, and the place itself."""
    used = np.flatnonzero(model.prototype_weights_)
    nearest = used[pairwise_distances_argmin(Z, model.prototypes_[used])]
    return pd.DataFrame({"prototype": nearest, **dict(zip(model.get_feature_names_out(), Z.T, strict=True))})


def with_gaps(table: pd.DataFrame, complete: NDArray[np.bool_]) -> pd.DataFrame:
    """The table of the complete rows as one of all rows, with empty cells for the others."""
    whole = table.set_axis(np.flatnonzero(complete)).reindex(np.arange(len(complete)))
    numbers = [name for name in ("prototype",) if name in whole]
    return whole.astype(dict.fromkeys(numbers, "Int64"))


def embedding_table(model: SDR, data: PreparedTable, fit_rows: NDArray[np.intp]) -> pd.DataFrame:
    """A row a row of the file: its part (fit, placed or left out), its target, its prototype and its place."""
    placed = data.usable.copy()
    placed[fit_rows] = False
    Z = np.empty((len(placed), model.prototypes_.shape[1]))
    Z[fit_rows] = model.embedding_
    if placed.any():
        Z[placed] = model.transform(data.X[placed])
    table = with_gaps(places(model, Z[data.usable]), data.usable)
    table.loc[fit_rows, "prototype"] = model.labels_
    part = np.where(placed, "placed", "left out").astype(object)
    part[fit_rows] = "fit"
    front = pd.DataFrame({"row": np.arange(len(placed)), "part": part})
    targets = pd.DataFrame(data.target.y).reset_index(drop=True)
    taken = {*front.columns, *table.columns}
    targets.columns = [f"{TRUTH} {name}" if name in taken else name for name in data.target.names]
    return pd.concat([front, targets, table], axis=1)


def prototype_table(model: SDR, data: PreparedTable, fit_rows: NDArray[np.intp]) -> pd.DataFrame:
    """The summary of the model, and the row of the file that stands for each prototype."""
    summary = model.summary().reset_index()
    summary["medoid"] = fit_rows[summary["medoid"]]
    medoids = data.table.iloc[summary["medoid"]].add_prefix("medoid ").reset_index(drop=True)
    return pd.concat([summary, medoids], axis=1)

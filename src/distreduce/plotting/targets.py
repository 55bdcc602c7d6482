"""What plots and the page show: targets by sample and on prototypes, and two views of a fit.

The views are what holds for samples that the fit has not seen (left out), and what it made of its own (fitted).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from distreduce._utils.text import number_text
from distreduce._utils.typing import Array
from distreduce.estimators._base import BaseReduction
from distreduce.estimators._targets import as_array, read_targets
from distreduce.exceptions import InvalidInputError

PLACES = ("left_out", "fitted")


def choose_places(model: BaseReduction, places: str) -> str:
    """Return the view that is drawn: "fitted" for a model without left-out places, such as DistR."""
    if places not in PLACES:
        raise InvalidInputError(f'places={places!r} must be "left_out" or "fitted".')
    return places if hasattr(model, "embedding_left_out_") else "fitted"


def sample_places(model: BaseReduction, places: str) -> Array:
    """Return where the training samples lie: as if each had not been in the fit, or as fitted."""
    left_out = choose_places(model, places) == "left_out"
    return model.embedding_left_out_ if left_out else model.embedding_


def prototype_means(model: BaseReduction, places: str) -> Array:
    """Return mean targets or class shares of the prototypes: those of the left-out samples nearby, or the fit's own."""
    if choose_places(model, places) == "left_out" and hasattr(model, "prototype_evidence_"):
        return model.prototype_evidence_[model.target_names_].to_numpy()
    return model.prototype_targets_


def read_shown_targets(model: BaseReduction, y: ArrayLike | None, target: int) -> tuple[NDArray[Any] | None, Array]:
    """Return the classes (None for numbers), and y as one-hot rows or as one column, NaN where it is unknown.

    A model that knows its task and classes decides how y is read; without y, all rows are unknown.
    """
    n, task = len(model.embedding_), getattr(model, "task_", None)
    labels = np.full(n, np.nan) if y is None else as_array(y)
    if labels.ndim not in (1, 2) or len(labels) != n:
        raise InvalidInputError(f"y must have one row for each of the {n} samples of the fit; got {labels.shape}.")
    n_columns = model.prototype_targets_.shape[1] if task == "regression" else labels[:1].size
    # Nothing is known: the model alone says how many columns there are.
    if pd.isna(labels).all():
        _check_column(target, n_columns, task)
        classes = model.classes_ if task == "classification" else None
        return classes, np.full((n, 1 if classes is None else len(classes)), np.nan)
    # to_learn=False: a y to look at may have one class only, which a y to learn from may not.
    read = read_targets(y, n, task or "auto", np.ones(n), to_learn=False)
    if read.classes is not None:
        return _match_classes(getattr(model, "classes_", read.classes), read.classes, read.values)
    _check_column(target, min(n_columns, read.values.shape[1]), task)
    return None, read.values[:, [target]]


def _check_column(target: int, n_columns: int, task: str | None) -> None:
    if task != "classification" and not 0 <= target < n_columns:
        raise InvalidInputError(f"target={target} is not a column of y, which has {n_columns}.")


def _match_classes(known: NDArray[Any], given: NDArray[Any], values: Array) -> tuple[NDArray[Any], Array]:
    """Spread the columns of the classes that y has over those of the fit."""
    places = pd.Index(known).get_indexer(pd.Index(given))
    if (places < 0).any():
        stranger = given[places < 0].tolist()[0]
        raise InvalidInputError(f"y holds the label {stranger!r}, which the fit did not have; its classes: {known}.")
    rows = np.zeros((len(values), len(known)))
    rows[:, places] = values
    rows[np.isnan(values).any(axis=1)] = np.nan  # unknown stays unknown, not "no class"
    return known, rows


def average_on_prototypes(
    model: BaseReduction, values: Array, empty: float | None = None, sample_weight: Array | None = None
) -> Array:
    """Return the mean of the samples' values on each prototype, weighted by the coupling and the samples' weights.

    Rows of NaN are unknown. A prototype that carries no known value gets `empty`, by default the mean of all samples.
    """
    known = np.flatnonzero(~np.isnan(values).any(axis=1))
    weights = np.ones(len(known)) if sample_weight is None else sample_weight[known]
    T = model.coupling_[known]
    mass = np.asarray(T.T @ weights).ravel()[:, None]  # T may be sparse
    means = np.asarray(T.T @ (weights[:, None] * values[known])) / np.where(mass > 0, mass, 1.0)
    return np.where(mass > 0, means, values[known].mean(axis=0) if empty is None else empty)


def sample_shares(model: BaseReduction, y: ArrayLike, target: int, n_bins: int) -> tuple[Array, list[str], str]:
    """Return y as one-hot rows of classes or bins (zero where unknown), the names of these, and that of the axis."""
    classes, values = read_shown_targets(model, y, target)
    if np.isnan(values).all():
        raise InvalidInputError("y holds no known target (all are None or NaN): there is nothing to draw.")
    if classes is not None:
        return np.nan_to_num(values), [str(label) for label in classes], "class"
    return _bin(model, values[:, 0], target, n_bins)


def prototype_shares(model: BaseReduction, target: int, n_bins: int) -> tuple[Array, list[str], str]:
    """Return the targets of the prototypes, class shares or binned means, in the form of :func:`sample_shares`."""
    if not hasattr(model, "prototype_targets_"):
        raise InvalidInputError(f"{type(model).__name__} has no targets of its own; give those of the samples as y.")
    if hasattr(model, "classes_"):
        return model.prototype_targets_, [str(label) for label in model.classes_], "class"
    _check_column(target, model.prototype_targets_.shape[1], "regression")
    return _bin(model, model.prototype_targets_[:, target], target, n_bins)


def _bin(model: BaseReduction, numbers: Array, target: int, n_bins: int) -> tuple[Array, list[str], str]:
    """Return one-hot rows of bins, zero where a number is NaN; each quarter of skewed numbers has bins of its own."""
    if n_bins < 1:
        raise InvalidInputError(f"n_bins must be at least 1; got {n_bins}.")
    known = numbers[~np.isnan(numbers)]
    ends = [known.min(), *scale_edges(known)[1:-1], known.max()]
    edges = np.interp(np.linspace(0, len(ends) - 1, n_bins + 1), np.arange(len(ends)), ends)
    # The largest number belongs to the last bin, whose right edge it is.
    rows = np.eye(n_bins)[np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, n_bins - 1)]
    rows[np.isnan(numbers)] = 0.0
    return rows, _name_bins(edges), target_name(model, target)


SKEWED = 0.25  # if the median is nearer to an end of the scale, half of the values would share a quarter of the colours
WIDE = 3.0  # if the range is this many times that of the middle 98 %, outliers are cut from the scale


def scale_edges(numbers: Array) -> list[float]:
    """Return numbers between which colours are evenly spaced: the ends of their scale or, if skewed, the quarters too.

    Numbers beyond the ends have the colour of the end.
    """
    low, high = float(numbers.min()), float(numbers.max())
    inner = np.quantile(numbers, [0.01, 0.99]).tolist()
    low, high = inner if high / 2 - low / 2 > WIDE * (inner[1] / 2 - inner[0] / 2) > 0 else (low, high)
    # Of skewed numbers nearly all would have one colour: let each quarter of them have its part of the scale.
    quarters = np.unique(np.clip(np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1]), low, high))
    share = (np.median(numbers) / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)  # huge ones overflow
    return [low, high] if len(quarters) <= 2 or SKEWED < share < 1 - SKEWED else quarters.tolist()


def _name_bins(edges: Array) -> list[str]:
    """Return "low to high" for every bin, with as few digits as tell the edges apart, three at least."""
    for digits in range(3, 17):
        texts = [number_text(float(f"{edge:.{digits}g}"), digits) for edge in edges]
        if len(set(texts)) == len(texts):
            break
    return [f"{low} to {high}" for low, high in zip(texts[:-1], texts[1:], strict=True)]


def target_name(model: BaseReduction, target: int) -> str:
    """Return the name of a continuous target, "y" if the model does not know it."""
    return model.target_names_[target].removeprefix("mean ") if hasattr(model, "target_names_") else "y"

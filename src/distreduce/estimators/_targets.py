"""The one reader of y: class shares or numbers in an (n, c) array, NaN where the target is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from distreduce._utils.typing import Array, Index
from distreduce.exceptions import InvalidInputError

DATES = "dates or durations; give numbers, such as the days since the first of them."
Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Targets:
    """Targets ready for the solver.

    Attributes
    ----------
    values : (n, c) array
        One-hot rows (classification) or the numbers as given (regression); rows of NaN are unknown.
    scaled : (n, c) array
        Regression: `values` with mean 0 and standard deviation 1 over the known rows; classification: `values`.
    classes : array or None
        Labels in the order of the columns.
    """

    task: Task
    values: Array
    scaled: Array
    classes: NDArray[Any] | None
    names: tuple[str, ...]

    def column_names(self) -> list[str]:
        """Return names for the columns of the prototypes' targets: shares of classes, or means of targets."""
        if self.classes is not None:
            return [f"share of {label}" for label in self.classes]
        names = self.names or tuple(f"y{column}" for column in range(self.values.shape[1]))
        return [f"mean {name}" for name in names]


def read_targets(y: Any, n_samples: int, task: str, weights: Array, *, to_learn: bool = True) -> Targets:
    """Check y and convert it to :class:`Targets`.

    With ``to_learn=False`` (a plot only shows y), a single class and constant numbers are accepted as well.
    """
    # A table, and which of its rows are known.
    names = _column_names(y)
    labels = _as_table(y, n_samples)
    missing = np.asarray(pd.isna(labels))
    known = np.asarray(~missing.any(axis=1))
    if not (known & (weights > 0)).any():
        raise InvalidInputError("y holds no known target (all are None or NaN); use DistR, which needs none.")
    incomplete = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(incomplete):
        row = int(incomplete[0])
        raise InvalidInputError(f"y has some targets of row {row} but not all; give all of a row or none (NaN).")
    # Numbers or classes?
    if task == "auto":
        task = _find_task(y, labels[known])
    reader = _read_classes if task == "classification" else _read_numbers
    return reader(labels, known, weights, names, to_learn)


def read_known_task(y: Any, n_samples: int, task: str) -> str:
    """Return the task of a predictor: `task`, or for "auto" the one that y suggests."""
    return _find_task(y, _read_known(y, n_samples)) if task == "auto" else task


def read_known_numbers(y: Any, n_samples: int) -> Array:
    """Return y of a regressor, which needs every target, as float64 numbers (n,) or (n, c)."""
    numbers = _as_numbers(_read_known(y, n_samples), "; for classes use a classifier.")
    assert_all_finite(numbers, input_name="y")
    return numbers[:, 0] if as_array(y).ndim == 1 else numbers  # the shape of y decides that of predictions


def read_known_labels(y: Any, n_samples: int) -> tuple[NDArray[Any], Index]:
    """Return the classes in y of a classifier, which needs every label, and the index of each sample's class."""
    _read_known(y, n_samples)  # only its checks
    # Scikit-learn's own checks and messages, which its estimator tests expect.
    labels = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(f"y has a single class ({classes.tolist()[0]!r}); give samples of two or more classes.")
    return classes, codes


def require_targets(estimator: Any, y: Any) -> None:
    """Raise InvalidInputError if y is None."""
    if y is None:
        raise InvalidInputError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")


def _read_known(y: Any, n_samples: int) -> NDArray[Any]:
    table = _as_table(y, n_samples)
    missing = np.asarray(pd.isna(table))
    if missing.any():
        row = int(np.flatnonzero(missing.any(axis=1))[0])
        raise InvalidInputError(
            f"Input y contains NaN or None: row {row} is the first of the unknown labels or targets; leave these rows "
            "out: only SDR can use them."
        )
    return table


def _find_task(y: Any, known: NDArray[Any]) -> Task:
    return "classification" if _is_categorical(y) else guess_task(known)


def guess_task(known: NDArray[Any]) -> Task:
    """Guess the task: fractions, or fewer than three samples per value, are regression; all else is classification.

    Text is never a number, even if it looks like one: codes such as "01234" are names.
    """
    if known.shape[1] > 1:
        return "regression"
    column = known[:, 0]
    if column.dtype.kind in "US" or any(isinstance(label, str | bytes) for label in column):
        return "classification"
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        return "classification"
    if isinstance(column[0], bool | np.bool_):  # after the conversion, which booleans pass too
        return "classification"
    n_values = len(np.unique(numbers))
    integral = bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())
    # Integers that repeat, or two values: codes of classes rather than measurements.
    return "classification" if integral and (n_values <= 2 or 3 * n_values <= len(numbers)) else "regression"


def _column_names(y: Any) -> tuple[str, ...]:
    if isinstance(y, pd.DataFrame):
        return tuple(str(name) for name in y.columns)
    name = getattr(y, "name", None)  # of a pandas or a polars Series
    return (str(name),) if name is not None and getattr(y, "ndim", 1) == 1 else ()


def _is_categorical(y: Any) -> bool:
    """Return whether y is a categorical column of pandas."""
    column = y.iloc[:, 0] if isinstance(y, pd.DataFrame) and y.shape[1] == 1 else y
    return isinstance(getattr(column, "dtype", None), pd.CategoricalDtype)


def as_array(y: Any) -> NDArray[Any]:
    """Return y as an array; masked labels become None, and NaN in a list of text stays NaN."""
    if isinstance(y, pd.Series | pd.DataFrame):
        return np.asarray(y.to_numpy())
    if isinstance(y, np.ma.MaskedArray):
        labels = y.data.astype(object)
        labels[np.ma.getmaskarray(y)] = None
        return labels
    read = np.asarray(y)
    # NumPy would turn NaN among strings into the text "nan".
    return np.asarray(y, dtype=object) if read.dtype.kind in "US" and isinstance(y, list | tuple) else read


def _as_table(y: Any, n_samples: int) -> NDArray[Any]:
    """Return y as an (n, c) array with one row per sample."""
    if sparse.issparse(y):
        raise InvalidInputError("y is a sparse matrix; give a dense array (y.toarray()).")
    labels = as_array(y)
    if labels.dtype.kind == "c":
        raise InvalidInputError(
            "Complex data not supported: y is complex; give its real and imaginary part as two columns."
        )
    if labels.ndim == 1:
        labels = labels[:, None]
    if labels.ndim != 2 or labels.shape[1] == 0:
        raise InvalidInputError(f"y should be a 1d array or a table (n_samples, n_targets); got shape {labels.shape}.")
    if len(labels) != n_samples:
        raise InvalidInputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples} rows and y {len(labels)}; "
            "give one target for each row (None or NaN where it is unknown)."
        )
    return labels


def _read_classes(
    labels: NDArray[Any], known: NDArray[np.bool_], weights: Array, names: tuple[str, ...], to_learn: bool
) -> Targets:
    if labels.shape[1] != 1:
        raise InvalidInputError(f"task='classification' takes one column of labels; y has {labels.shape[1]}.")
    column = labels[known, 0]
    if column.dtype.kind == "O":  # None among the labels left an object array: restore their type
        column = np.array(column.tolist()) if _one_type(column) else column.astype(str)
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise InvalidInputError("y contains infinity; a label must be finite, or NaN for an unknown one.")
    # Labels that only rows of weight zero have are not classes; those rows stay all zero.
    classes = np.unique(column[weights[known] > 0])
    if to_learn and len(classes) < 2:
        raise InvalidInputError(
            f"y has a single class ({classes.tolist()[0]!r}); there is nothing to tell apart. Use DistR."
        )
    values = np.full((len(labels), len(classes)), np.nan)
    values[known] = (column[:, None] == classes[None, :]).astype(float)
    return Targets("classification", values, values, classes, names)


def _one_type(column: NDArray[Any]) -> bool:
    kinds = {type(value) for value in column}
    return len(kinds) == 1 or all(issubclass(kind, int | float | np.number) for kind in kinds)


def _read_numbers(
    labels: NDArray[Any], known: NDArray[np.bool_], weights: Array, names: tuple[str, ...], to_learn: bool
) -> Targets:
    values = np.full(labels.shape, np.nan)
    values[known] = _as_numbers(labels[known], " for task='regression'.")
    if not np.isfinite(values[known]).all():
        raise InvalidInputError("Input y contains infinity; remove those rows, or put NaN where the target is unknown.")
    used = known & (weights > 0)  # rows of weight zero must not change the scale
    scaled, constant = standardize(values, np.where(used, weights, 0.0))
    if to_learn and constant.all():
        raise InvalidInputError(f"y is constant ({values[used][0, 0]}); there is nothing to learn from it. Use DistR.")
    return Targets("regression", values, scaled, None, names)


def _as_numbers(table: NDArray[Any], advice: str) -> Array:
    if table.dtype.kind in "mM":
        raise InvalidInputError(f"y holds {DATES}")
    try:
        return table.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"y cannot be read as numbers ({error}){advice}") from error


def standardize(values: Array, weights: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Scale columns to weighted mean 0 and standard deviation 1; return them and which are constant (left at 0)."""
    used = ~np.isnan(values).any(axis=1) & (weights > 0)
    # First to at most 1: squares of very large or very small targets would overflow or vanish.
    largest = np.abs(values[used]).max(axis=0)
    largest[largest == 0] = 1.0
    w, part = weights[used], values[used] / largest
    mean = w @ part / w.sum()
    spread = np.sqrt(w @ (part - mean) ** 2 / w.sum())
    constant = spread <= 1e-12  # of values of at most 1: rounding
    return (values / largest - mean) / np.where(constant, 1.0, spread), constant

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

from distreduce._utils.text import warn_user
from distreduce._utils.typing import Array, Index, Mask
from distreduce.exceptions import DataWarning, InvalidInputError

DATES = "dates or durations; give numbers, such as the days since the first of them, or texts for classes."
DATE_KINDS = ("datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period")  # of pandas' infer_dtype
MAX_NUMBERED_CLASSES = 20  # more distinct whole numbers than this are measurements or counts
ROWS_PER_CLASS = 3
LARGEST_TARGET = 1e307  # sums of larger numbers overflow
Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Targets:
    """Targets ready for the solver: class shares or numbers (n, c), with rows of NaN where they are unknown."""

    task: Task
    values: Array
    scaled: Array  # numbers with mean 0 and standard deviation 1 over the known rows; class shares as they are
    classes: NDArray[Any] | None  # labels in the order of the columns
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
        task, doubt = guess_task(y, labels[known], weights[known])
        if doubt and to_learn:
            advice = "give task='classification' if they are classes, or task='regression' to hide this warning."
            warn_user(f"y has {doubt}, which are read as numbers; {advice}", DataWarning)
    if task == "classification":
        unlabelled = find_unlabelled(labels[:, 0], known & (weights > 0))
        known &= ~unlabelled
        if unlabelled.any() and to_learn:
            count = f"The label -1 of {unlabelled.sum()} rows is read as unknown, as in scikit-learn"
            warn_user(f"{count}; give NaN to hide this warning, or y.astype(str) if -1 is a class.", DataWarning)
    reader = _read_classes if task == "classification" else _read_numbers
    return reader(labels, known, weights, names, to_learn)


def read_known_task(y: Any, n_samples: int, task: str) -> str:
    """Return the task of a predictor: `task`, or for "auto" the one that y suggests."""
    return guess_task(y, _read_known(y, n_samples), np.ones(n_samples))[0] if task == "auto" else task


def read_known_numbers(y: Any, n_samples: int) -> Array:
    """Return y of a regressor, which needs every target, as float64 numbers (n,) or (n, c)."""
    numbers = _as_numbers(_read_known(y, n_samples), "; for classes use a classifier.")
    largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
    if largest > LARGEST_TARGET:
        raise InvalidInputError(f"y holds {largest:g}: sums of such numbers overflow; divide y by 1e10.")
    assert_all_finite(numbers, input_name="y")
    return numbers[:, 0] if as_array(y).ndim == 1 else numbers  # the shape of y decides that of predictions


def read_known_labels(y: Any, n_samples: int) -> tuple[NDArray[Any], Index]:
    """Return the classes in y of a classifier, which needs every label, and the index of each sample's class."""
    _read_known(y, n_samples)  # only its checks
    # Scikit-learn's own checks and messages, which its estimator tests expect.
    labels = _as_labels(column_or_1d(as_array(y), warn=True))
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(f"y has a single class ({classes.tolist()[0]!r}); give samples of two or more classes.")
    return classes, codes


def require_targets(estimator: Any, y: Any) -> None:
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


def guess_task(y: Any, known: NDArray[Any], weights: Array) -> tuple[Task, str]:
    """Guess the task from the known targets of y, and say what speaks against the guess ("" if nothing does).

    Numbers are classes if they are whole, have few distinct values, and each value has `ROWS_PER_CLASS` rows on average
    (0 and 1 need not). A weight counts as so many copies of its row. Text is never a number: "01234" is a name.
    """
    column = y.iloc[:, 0] if isinstance(y, pd.DataFrame) and y.shape[1] == 1 else y
    if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        return "classification", ""
    if known.shape[1] > 1:
        return "regression", ""
    column = known[:, 0]
    if column.dtype.kind in "US" or any(isinstance(label, str | bytes) for label in column):
        return "classification", ""
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        return "classification", ""
    if isinstance(column[0], bool | np.bool_):  # after the conversion, which booleans pass too
        return "classification", ""
    used = weights > 0
    values = np.unique(numbers[used])
    if not (np.isfinite(values).all() and (values == np.round(values)).all()):
        return "regression", ""
    # Weights may also be shares that sum to one: a row counts at least once.
    n_rows = max(used.sum(), weights.sum())
    repeated = ROWS_PER_CLASS * len(values) <= n_rows or np.isin(values, (0, 1)).all()
    if len(values) <= MAX_NUMBERED_CLASSES and repeated:
        return "classification", ""
    doubtful = 2 * len(values) <= n_rows and len(values) <= 5 * MAX_NUMBERED_CLASSES  # hundreds are not classes
    return "regression", f"{len(values):,} distinct whole numbers" if doubtful else ""


def find_unlabelled(column: NDArray[Any], used: Mask) -> Mask:
    """Return which labels are -1, scikit-learn's mark of an unknown class.

    It is one only if the others are two or more whole numbers from 0 on: {-1, 1} and {-2, -1, 0} are classes.
    """
    nothing = np.zeros(len(column), dtype=bool)
    if any(isinstance(label, str | bytes | bool | np.bool_) for label in column[used]):
        return nothing
    try:
        labels = np.where(used, column, np.nan).astype(np.float64)
    except (TypeError, ValueError):
        return nothing
    others = np.unique(labels[used & (labels != -1)])
    marks = len(others) > 1 and bool((others >= 0).all() and (others == np.round(others)).all())
    return np.asarray(column == -1) & ~pd.isna(column) if marks else nothing


def _column_names(y: Any) -> tuple[str, ...]:
    if isinstance(y, pd.DataFrame):
        return tuple(str(name) for name in y.columns)
    name = getattr(y, "name", None)  # of a pandas or a polars Series
    return (str(name),) if name is not None and getattr(y, "ndim", 1) == 1 else ()


def as_array(y: Any) -> NDArray[Any]:
    """Return y as an array; masked labels become None, NaN in a list of text stays NaN, and decimals are float64."""
    if isinstance(y, np.ma.MaskedArray):
        labels = y.data.astype(object)
        labels[np.ma.getmaskarray(y)] = None
    else:
        labels = np.asarray(y.to_numpy() if isinstance(y, pd.Series | pd.DataFrame) else y)
    # NumPy would turn NaN among strings into the text "nan".
    if labels.dtype.kind in "US" and isinstance(y, list | tuple):
        labels = np.asarray(y, dtype=object)
    if _infer_kind(labels) == "decimal":
        return np.where(pd.isna(labels), np.nan, labels).astype(np.float64)
    return labels


def holds_dates(labels: NDArray[Any]) -> bool:
    """Return whether these are dates, times or durations, as NumPy, pandas or Python have them."""
    return labels.dtype.kind in "mM" or _infer_kind(labels) in DATE_KINDS


def _infer_kind(labels: NDArray[Any]) -> str:
    """Return what an array of Python objects holds, in the words of pandas."""
    return str(pd.api.types.infer_dtype(labels.ravel(), skipna=True)) if labels.dtype.kind == "O" else ""


def _as_table(y: Any, n_samples: int) -> NDArray[Any]:
    """Return y as an (n, c) array with one row per sample."""
    if sparse.issparse(y):
        raise InvalidInputError("y is a sparse matrix; give a dense array (y.toarray()).")
    labels = as_array(y)
    if labels.dtype.kind == "c":
        raise InvalidInputError(
            "Complex data not supported: y is complex; give its real and imaginary part as columns."
        )
    if holds_dates(labels):
        raise InvalidInputError(f"y holds {DATES}")
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


def _read_classes(labels: NDArray[Any], known: Mask, weights: Array, names: tuple[str, ...], to_learn: bool) -> Targets:
    if labels.shape[1] != 1:
        raise InvalidInputError(f"task='classification' takes one column of labels; y has {labels.shape[1]}.")
    column = _as_labels(labels[known, 0])
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise InvalidInputError("y contains infinity; a label must be finite, or NaN for an unknown one.")
    # Labels that only rows of weight zero have are not classes; those rows stay all zero.
    classes = np.unique(column[weights[known] > 0])
    if to_learn and len(classes) < 2:
        raise InvalidInputError(f"y has a single class ({classes.tolist()[0]!r}): nothing to tell apart. Use DistR.")
    values = np.full((len(labels), len(classes)), np.nan)
    values[known] = (column[:, None] == classes[None, :]).astype(float)
    return Targets("classification", values, values, classes, names)


def _as_labels(column: NDArray[Any]) -> NDArray[Any]:
    """Return labels as an array of one type; raise InvalidInputError if a number and a text would become one class."""
    if column.dtype.kind != "O":
        return column
    kinds = {type(value) for value in column}
    if len(kinds) == 1 or all(issubclass(kind, int | float | np.number) for kind in kinds):
        return np.array(column.tolist())  # None among the labels left an object array: restore their type
    seen: dict[str, Any] = {}
    for label in column:
        other = seen.setdefault(str(label), label)
        if other is not label and isinstance(other, str) != isinstance(label, str):
            number, text = sorted((other, label), key=lambda each: isinstance(each, str))
            raise InvalidInputError(f"y holds both {number} and {text!r}; give all labels as numbers or all as text.")
    return column.astype(str)


def _read_numbers(labels: NDArray[Any], known: Mask, weights: Array, names: tuple[str, ...], to_learn: bool) -> Targets:
    values = np.full(labels.shape, np.nan)
    several = "; labels are one column of labels, several columns are numbers."
    values[known] = _as_numbers(labels[known], several if labels.shape[1] > 1 else " for task='regression'.")
    if not np.isfinite(values[known]).all():
        raise InvalidInputError("Input y contains infinity; remove those rows, or put NaN where the target is unknown.")
    used = known & (weights > 0)  # rows of weight zero must not change the scale
    scaled, constant = standardize(values, np.where(used, weights, 0.0))
    if to_learn and constant.all():
        first, width = values[used][0, 0], np.ptp(values[used][:, 0])
        if width > 0:
            raise InvalidInputError(f"y varies by {width:.3g} around {first:.3g}, too little: subtract a constant.")
        raise InvalidInputError(f"y is constant ({first}); there is nothing to learn from it. Use DistR.")
    return Targets("regression", values, scaled, None, names)


def _as_numbers(table: NDArray[Any], advice: str) -> Array:
    try:
        # As objects: an error names the text itself, not np.str_(...).
        return (table.astype(object) if table.dtype.kind == "U" else table).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"y cannot be read as numbers ({error}){advice}") from error


def standardize(values: Array, weights: Array) -> tuple[Array, Mask]:
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

"""Transactional fits: they set all of their attributes or none, and only finite ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator

from distreduce.exceptions import NumericalError

UNUSED = ("history_.cka",)  # NaN for other measures of dependence, and without targets


@dataclass
class Fitting:
    """A fit in progress. `best` is what a NumericalError carries if the fit fails from here on."""

    best: Any = None


@contextmanager
def whole_fit(estimator: Any) -> Iterator[Fitting]:
    """Make `fit` transactional: on any exception, restore the previous state, including an earlier fit.

    Failures of LAPACK become a :class:`NumericalError`. Fitted attributes with NaN or infinite values raise one.
    """
    # A shallow copy is enough: fits replace attributes and do not change them in place.
    before, fitting = dict(vars(estimator)), Fitting()
    try:
        yield fitting
        check_fitted(estimator)
    except BaseException as error:  # a KeyboardInterrupt must not leave half a fit either
        vars(estimator).clear()
        vars(estimator).update(before)
        if isinstance(error, np.linalg.LinAlgError):
            message = f"A matrix could not be factorised ({error}); scale X and y."
            raise NumericalError(message, best=fitting.best) from error
        if isinstance(error, NumericalError) and error.best is None:  # an error of the solver carries its own
            error.best = fitting.best
        raise


def check_fitted(estimator: Any) -> None:
    """Raise NumericalError if a fitted attribute holds NaN or infinite values."""
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    for name, value in fitted.items():
        found = _not_finite(name, value)
        if found is not None:
            raise NumericalError(
                f"{type(estimator).__name__} found numbers in {found} that are not finite; look for very large values "
                "in X and y, and scale them."
            )


def _not_finite(name: str, value: Any) -> str | None:
    """Return the name of the first part that is not finite, or None; nested estimators have checked themselves."""
    if isinstance(value, BaseEstimator) or name in UNUSED:
        return None
    if isinstance(value, float | np.floating):
        return None if math.isfinite(value) else name
    if isinstance(value, np.ndarray):
        return None if value.dtype.kind != "f" or np.isfinite(value).all() else name
    parts = _parts(value)
    return next((found for part in parts if (found := _not_finite(f"{name}.{part}", parts[part]))), None)


def _parts(value: Any) -> Mapping[Any, Any]:
    """Return the parts of tables, sequences and objects of this package; nothing for other objects."""
    if sparse.issparse(value):
        return {"data": value.data}
    if isinstance(value, pd.DataFrame):
        return {column: value[column].to_numpy() for column in value.columns}
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    return vars(value) if type(value).__module__.startswith("distreduce.") else {}  # such as KernelMap

"""A standard deviation for regressors that have none."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, MultiOutputMixin, RegressorMixin, clone
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, validate_data

from distreduce.metrics.held_out import LARGE


def fit_weighted(estimator: Any, X: Any, y: Any, weights: Any, groups: Any = None) -> Any:
    """Fit an estimator, or the last step of a pipeline, with weights and groups of the samples if there are any."""
    given = {} if groups is None or not has_fit_parameter(estimator, "groups") else {"groups": groups}
    if weights is None:
        return estimator.fit(X, y, **given)
    name = f"{estimator.steps[-1][0]}__sample_weight" if isinstance(estimator, Pipeline) else "sample_weight"
    return estimator.fit(X, y, **{name: weights}, **given)


class ConstantSpread(RegressorMixin, MultiOutputMixin, MetaEstimatorMixin, BaseEstimator):
    """A regressor whose predictions all have one standard deviation: that of its cross-validated errors.

    Parameters
    ----------
    estimator : estimator
        A scikit-learn regressor.
    cv : int or cross-validation generator, default=5
        Number of folds, or the folds.

    Attributes
    ----------
    estimator_ : estimator
        The regressor, fitted to all samples.
    std_ : float or (n_targets,) array
        Root mean square of the errors on left-out samples, in the units of y.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> mean, std = ConstantSpread(RidgeCV()).fit(X, y).predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "cv": [Interval(Integral, 2, None, closed="left"), "cv_object"],
    }

    def __init__(self, estimator: Any, cv: int = 5) -> None:
        self.estimator = estimator
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> ConstantSpread:
        """Fit the regressor to X (n_samples, n_features) and y, and measure its errors on left-out samples (groups)."""
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        size = float(np.abs(y).max())
        self._unit = size if size > LARGE else 1.0
        y = y / self._unit
        whole = isinstance(self.cv, Integral)
        folds = KFold(min(self.cv, len(y)), shuffle=True, random_state=0) if whole else check_cv(self.cv)
        if whole and groups is not None:
            folds = GroupKFold(min(self.cv, len(np.unique(groups))))
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        missed = np.zeros_like(y)
        for kept, left_out in folds.split(X, y, groups):
            own = None if weights is None else weights[kept]
            fold = fit_weighted(clone(self.estimator), X[kept], y[kept], own)
            missed[left_out] = y[left_out] - fold.predict(X[left_out]).reshape(y[left_out].shape)
        self.estimator_ = fit_weighted(clone(self.estimator), X, y, weights)
        self.std_ = self._unit * np.maximum(np.sqrt(np.average(missed**2, axis=0, weights=weights)), 1e-300)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets and, with `return_std`, their standard deviation."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        mean = self._unit * np.asarray(self.estimator_.predict(X))
        return (mean, np.broadcast_to(self.std_, mean.shape)) if return_std else mean

"""Linear baseline: Bayesian ridge regression, or logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from distreduce.baselines._by_task import PredictorByTask, classifies
from distreduce_paper.problems import Array


class LinearBaseline(PredictorByTask):
    """A linear model on standardised features, with its uncertainty: the least that a reduction has to beat.

    For numbers, one :class:`~sklearn.linear_model.BayesianRidge` [1]_ per target; its predictive standard deviation
    includes weights and noise. For classes, :class:`~sklearn.linear_model.LogisticRegression`.

    Parameters
    ----------
    task : {"auto", "regression", "classification"}, default="auto"
        How to read y, as in :class:`distreduce.SDR`.

    Attributes
    ----------
    models_ : list
        One fitted model per target; a single one for classes.
    task_ : str
        The task that y was read for.
    classes_ : array
        Labels; only for classification.

    References
    ----------
    .. [1] MacKay (1992). Bayesian interpolation. Neural Computation 4(3).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> mean, std = LinearBaseline(task="regression").fit(X, y).predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    def __init__(self, task: str = "auto") -> None:
        self.task = task

    def fit(self, X: Any, y: Any) -> LinearBaseline:
        """Fit to samples X (n_samples, n_features) and their targets y, (n_samples,) or (n_samples, n_targets)."""
        X, y = self._read(X, y)
        self._one_target = y.ndim == 1
        # BayesianRidge takes one target at a time.
        columns = [y] if self._one_target else list(y.T)
        with threadpool_limits(1, user_api="blas"):
            self.models_ = [self._model().fit(X, column) for column in columns]
        return self

    def _model(self) -> Any:
        kind = LogisticRegression(max_iter=1000) if self.task_ == "classification" else BayesianRidge()
        return make_pipeline(StandardScaler(), kind)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict classes, or means and optionally standard deviations, in the shape that y had."""
        check_is_fitted(self)
        self._check_std(return_std)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        if not return_std:
            return self._together([model.predict(X) for model in self.models_])
        means, deviations = zip(*(model.predict(X, return_std=True) for model in self.models_), strict=True)
        return self._together(means), self._together(deviations)

    def _together(self, columns: Any) -> NDArray[Any]:
        return np.asarray(columns[0] if self._one_target else np.column_stack(columns))

    @available_if(classifies)
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of ``classes_``: (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.models_[0].predict_proba(X))

"""Bases of the baselines that read y for a `task`: transformers, and predictors of numbers or of classes."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.typing import Array, Self
from distreduce.estimators._targets import (
    read_known_labels,
    read_known_numbers,
    read_known_task,
    read_targets,
    require_targets,
)
from distreduce.exceptions import InvalidInputError
from distreduce.losses import supervised_rows


class ByTask(BaseEstimator):
    """An estimator that needs y and reads it by its parameter `task`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "task": [StrOptions({"auto", "regression", "classification"})]
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _read_inputs(self, X: Any, y: Any) -> Array:
        self._validate_params()
        require_targets(self, y)
        return np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))


class SupervisedTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ByTask):
    """A transformer that reads y as :class:`distreduce.SDR` does; samples without a target are left out.

    Subclasses define `_learn`, from samples and their targets (one-hot, or standardised numbers), and `_embed`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ByTask._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the embedding from samples X (n_samples, n_features) and their targets y, None or NaN where unknown.

        Standardise the features unless their scales mean something.
        """
        X = self._read_inputs(X, y)
        targets = read_targets(y, len(X), self.task, np.ones(len(X)))
        # Embeddings are learned from samples with a target only, unlike SDR, which also uses the others.
        known = supervised_rows(targets.values)
        if known.sum() < 2:
            name = type(self).__name__
            raise InvalidInputError(f"y has a single known target; {name} needs two samples or more with one.")
        self.task_ = targets.task
        self._learn(X[known], targets.scaled[known])
        return self

    def transform(self, X: Any) -> Array:
        """Embed samples, seen or unseen, each independently of the others: (n_samples, n_components)."""
        check_is_fitted(self)
        return self._embed(validate_data(self, X, reset=False, dtype=np.float64))

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and embed every sample: equal to ``fit(X, y).transform(X)``."""
        return self.fit(X, y).transform(X)

    def _check_components(self, largest: int, of_what: str) -> None:
        if self.n_components > largest:
            raise InvalidInputError(
                f"n_components={self.n_components} is more than the number of {of_what}, {largest}; give at most that."
            )


def classifies(model: PredictorByTask) -> bool:
    """Whether the model is, or by its parameter will be, a classifier (for ``available_if``)."""
    return model._known_task() == "classification"


class PredictorByTask(ByTask):
    """A predictor of numbers (one or several targets) or of classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._known_task() == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif self._known_task() == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        return tags

    def score(self, X: Any, y: Any) -> float:
        """Accuracy for classes, R² for numbers."""
        predicted = self.predict(X)
        return float(accuracy_score(y, predicted) if self.task_ == "classification" else r2_score(y, predicted))

    def _known_task(self) -> str:
        # scikit-learn reads the tags before the fit as well, when "auto" is still open.
        return str(getattr(self, "task_", "auto") if self.task == "auto" else self.task)

    def _read(self, X: Any, y: Any) -> tuple[Array, NDArray[Any]]:
        """X, and y as numbers (n,) or (n, c) or as labels (n,); sets ``task_`` and ``classes_``."""
        X = self._read_inputs(X, y)
        # Unlike the transformers, predictors need every target: the readers below raise if one is missing.
        self.task_ = read_known_task(y, len(X), self.task)
        if self.task_ == "classification":
            self.classes_, codes = read_known_labels(y, len(X))
            return X, self.classes_[codes]
        self.__dict__.pop("classes_", None)  # of an earlier fit to labels
        return X, read_known_numbers(y, len(X))

    def _check_std(self, return_std: bool) -> None:
        if return_std and self.task_ == "classification":
            raise InvalidInputError("return_std=True is for numbers; for classes, use predict_proba.")

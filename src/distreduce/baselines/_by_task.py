"""What the predictors that serve both tasks share: one class, a regressor or a classifier by its `task`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from distreduce._utils.typing import Array
from distreduce.estimators._targets import guess_task
from distreduce.exceptions import InvalidInputError


def classifies(model: PredictorByTask) -> bool:
    """Whether the model is, or by its parameter will be, a classifier (for ``available_if``)."""
    return model._known_task() == "classification"


class PredictorByTask(BaseEstimator):
    """A predictor of numbers (one or several targets) or of classes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "task": [StrOptions({"auto", "regression", "classification"})],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self._known_task() == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif self._known_task() == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        return tags

    def score(self, X: Any, y: Any) -> float:
        """Accuracy of the classes, or R² of the numbers."""
        predicted = self.predict(X)
        return float(accuracy_score(y, predicted) if self.task_ == "classification" else r2_score(y, predicted))

    def _known_task(self) -> str:
        return str(getattr(self, "task_", "auto") if self.task == "auto" else self.task)

    def _read(self, X: Any, y: Any) -> tuple[Array, NDArray[Any]]:
        """X, and y as numbers (n,) or (n, c) or as labels (n,); sets ``task_`` and ``classes_``."""
        self._validate_params()
        if y is None:
            raise InvalidInputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        task = self.task
        if task == "auto":
            labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
            task = guess_task(labels.reshape(len(labels), -1))
        if task == "classification":
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
            check_classification_targets(y)
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise InvalidInputError(f"y has a single class ({self.classes_[0]!r}); give samples of two or more.")
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
            y = y.astype(np.float64)
            self.__dict__.pop("classes_", None)  # of an earlier fit to labels
        self.task_ = task
        return X, y

    def _refuse_std(self, return_std: bool) -> None:
        if return_std and self.task_ == "classification":
            raise InvalidInputError("return_std=True is for numbers; of classes, predict_proba says how sure they are.")

"""What the supervised transformers among the baselines share: the task parameter, and reading X with y."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data

from distreduce._utils.typing import Array
from distreduce.estimators._targets import Targets, read_targets
from distreduce.exceptions import InvalidInputError
from distreduce.losses import supervised_rows


class SupervisedTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that needs y, read as :class:`distreduce.SDR` reads it; samples without a target are left out."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "task": [StrOptions({"auto", "regression", "classification"})],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and return the place of every sample: equal to ``fit(X, y).transform(X)``."""
        return self.fit(X, y).transform(X)

    def _read(self, X: Any, y: Any) -> tuple[Array, Targets, Array]:
        """X of the samples with a target, the targets, and their rows in use: one-hot, or standardised numbers."""
        name = type(self).__name__
        if y is None:
            raise InvalidInputError(f"{name} requires y to be passed, but the target y is None.")
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        targets = read_targets(y, len(X), self.task, np.ones(len(X)))
        known = supervised_rows(targets.values)
        if known.sum() < 2:
            raise InvalidInputError(f"y has a single known target; {name} needs two samples or more with one.")
        self.task_ = targets.task
        return X[known], targets, targets.scaled[known]

    def _check_components(self, largest: int, of_what: str) -> None:
        if self.n_components > largest:
            raise InvalidInputError(
                f"n_components={self.n_components} is more than the number of {of_what}, {largest}; give at most that."
            )

"""What the GP regressors share: reading y, predictions in its units, their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.estimators import SDR
from distreduce.estimators._saving import SavingMixin
from distreduce.estimators._targets import DATES
from distreduce.exceptions import InvalidInputError
from distreduce.gp._hyperparameters import Training
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import TargetScale
from distreduce.sharding.dask_collections import brought, gathered, is_dask
from distreduce.sharding.dask_predict import by_blocks

CHUNK = 100_000  # samples whose views are held at once in a prediction
MAX_EXACT = 10_000  # an exact GP holds n² numbers (0.8 GB here) and takes n³ operations


class BaseGPRegressor(SavingMixin, RegressorMixin, MultiOutputMixin, BaseEstimator):
    """A regressor whose fitted state is one :class:`Stack` a target; subclasses say which views of X these see."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gp_optimizer": [StrOptions({"lbfgs", "adam"})],
        "gp_steps": [Interval(Integral, 1, None, closed="left"), None],
        "gp_lr": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": SDR._parameter_constraints["n_jobs"],
        "random_state": ["random_state"],
    }

    gp_optimizer: str
    gp_steps: int | None
    gp_lr: float
    stacks_: tuple[Stack, ...]
    target_scale_: TargetScale

    def _training(self) -> Training:
        default = 200 if self.gp_optimizer == "lbfgs" else 20
        return Training(self.gp_optimizer, self.gp_steps or default, self.gp_lr)

    def _read(self, X: Any, y: Any) -> tuple[Array, Array]:
        """X, and the standardised targets (n, c); sets ``target_scale_``."""
        self._validate_params()
        if y is None:
            raise InvalidInputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        # One memory order, whatever came: sums of a frame's columns would otherwise round differently.
        X, y = validate_data(
            self,
            gathered(X),
            brought(y),
            dtype=np.float64,
            order="C",
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=2,
        )
        y = _numbers(y)
        self.target_scale_ = TargetScale.of(y)
        return X, self.target_scale_.standardise(y).reshape(len(y), -1)

    def _views(self, X: Array) -> dict[str, Array]:
        """What the processes see of validated samples."""
        raise NotImplementedError

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the targets, in their units and in the shape that y had.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; any number of them, in bounded memory unless `return_cov`.
        return_std : bool, default=False
            Also return the standard deviation of each prediction, observation noise included.
        return_cov : bool, default=False
            Also return the joint covariance (n_samples, n_samples), or (n_samples, n_samples, n_targets).

        Returns
        -------
        array, or pair of arrays
            Means, or means and standard deviations or covariances.
        """
        if return_std and return_cov:
            raise InvalidInputError("At most one of return_std and return_cov can be asked for.")
        check_is_fitted(self)
        if is_dask(X):
            if return_cov:
                raise InvalidInputError(
                    "return_cov needs all samples in one place; give a NumPy array of fewer samples."
                )
            return by_blocks(self, "predict", X, return_std=return_std)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        with single_threaded_blas():
            parts = [self._moments(X[start : start + CHUNK]) for start in range(0, len(X), CHUNK)]
            mean, std = self.target_scale_.in_units(*map(np.concatenate, zip(*parts, strict=True)))
            if not return_cov:
                return (mean, std) if return_std else mean
            return mean, self._covariance(X)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles of the predictive distribution: (n_samples, n_quantiles), or (n_samples, n_targets, n_quantiles).

        The default is the median with the bounds of the central 90 % interval.
        """
        levels = np.asarray(quantiles, dtype=np.float64)
        if levels.ndim != 1 or len(levels) == 0 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"quantiles={quantiles!r} must be numbers between 0 and 1, such as (0.05, 0.95).")
        if is_dask(X):
            return by_blocks(self, "predict_quantiles", X, quantiles=tuple(quantiles))
        mean, std = self.predict(X, return_std=True)
        errors = np.array([stack.tails.quantiles(levels) for stack in self.stacks_])
        return np.asarray(mean[..., None] + std[..., None] * (errors if self.target_scale_.is_table else errors[0]))

    def _moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the standardised targets: (n, t) each."""
        views = self._views(X)
        mean, variance = zip(*(stack.moments(views) for stack in self.stacks_), strict=True)
        return np.stack(mean, axis=1), np.sqrt(np.stack(variance, axis=1))

    def _covariance(self, X: Array) -> Array:
        """Joint covariance of the samples in the units of y."""
        views = self._views(X)
        covariances = np.stack([stack.covariance(views) for stack in self.stacks_], axis=-1)
        scaled = covariances * self.target_scale_.std**2
        return scaled if self.target_scale_.is_table else scaled[..., 0]


def _numbers(y: NDArray[Any]) -> Array:
    if y.dtype.kind in "mM":
        raise InvalidInputError(f"y holds {DATES}")
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"y cannot be read as numbers ({error}); for classes use a classifier.") from error


def refuse_large(n: int, advice: str) -> None:
    """An exact GP of too many samples would fill the memory and never end."""
    if n > MAX_EXACT:
        raise InvalidInputError(f"An exact GP of {n} samples is too large (at most {MAX_EXACT}); {advice}.")

"""GPRegressor, a GP on the features themselves, and the base of the GP regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import single_threaded_blas, workers
from distreduce._utils.typing import Array
from distreduce.estimators._targets import read_known_numbers
from distreduce.estimators._transaction import whole_fit
from distreduce.exceptions import InvalidInputError
from distreduce.gp._estimator import BaseGP
from distreduce.gp._exact import ExactGP, check_exact_size, train
from distreduce.gp._hyperparameters import Training
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import TargetScale, feature_spread
from distreduce.sharding.dask_collections import compute, is_dask, predict_by_blocks

CHUNK = 100_000  # samples that are predicted at once


class BaseGPRegressor(RegressorMixin, MultiOutputMixin, BaseGP):
    """A regressor with one :class:`Stack` per target in ``stacks_``; subclasses define the views of X they see."""

    def _read(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Return X and the standardised targets (n, c); set ``target_scale_``."""
        X = self._read_inputs(X, y)
        y = read_known_numbers(compute(y), len(X))
        self.target_scale_ = TargetScale.of(y)
        return X, self.target_scale_.standardise(y).reshape(len(y), -1)

    def _regression_training(self) -> Training:
        return self._training(lbfgs_steps=200, adam_steps=20)

    def _views(self, X: Array) -> dict[str, Array]:
        """Inputs of each process at validated samples."""
        raise NotImplementedError

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the targets, in their units and in the shape that y had.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. Memory is bounded for any number of them, unless `return_cov` is True.
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
            raise InvalidInputError("At most one of return_std and return_cov can be True.")
        check_is_fitted(self)
        if is_dask(X):
            if return_cov:
                raise InvalidInputError(
                    "return_cov needs all samples in one place; give a NumPy array of fewer samples."
                )
            return predict_by_blocks(self, "predict", X, return_std=return_std)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        with single_threaded_blas():
            # The views of a chunk bound the memory, for any number of samples.
            parts = [self._moments(X[start : start + CHUNK]) for start in range(0, len(X), CHUNK)]
            mean, std = self.target_scale_.in_units(*map(np.concatenate, zip(*parts, strict=True)))
            if not return_cov:
                return (mean, std) if return_std else mean
            return mean, self._covariance(X)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Predict quantiles of the targets, by default the median and the bounds of the central 90 % interval.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)
            Probabilities between 0 and 1.

        Returns
        -------
        array of shape (n_samples, n_quantiles) or (n_samples, n_targets, n_quantiles)
            Quantiles of the predictive distribution, in the units of y.
        """
        levels = np.asarray(quantiles, dtype=np.float64)
        if levels.ndim != 1 or len(levels) == 0 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"quantiles={quantiles!r} must be numbers between 0 and 1, such as (0.05, 0.95).")
        if is_dask(X):
            return predict_by_blocks(self, "predict_quantiles", X, quantiles=tuple(quantiles))
        mean, std = self.predict(X, return_std=True)
        # Errors in units of std have one distribution per target, so their quantiles hold for all samples.
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
        return np.asarray(scaled if self.target_scale_.is_table else scaled[..., 0])


class GPRegressor(BaseGPRegressor):
    """Exact Gaussian-process regression [1]_ with an RBF-ARD kernel on the features.

    Parameters
    ----------
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" maximises the marginal likelihood to convergence; "adam" takes `gp_steps` steps from GPyTorch's usual
        start, as in the paper.
    gp_steps : int or None, default=None
        Number of iterations; None is at most 200 for L-BFGS and 20 for Adam.
    gp_lr : float, default=0.1
        Learning rate of Adam.
    n_jobs : int or None, default=None
        Number of threads, at most one per target; None uses every core.
    random_state : int, RandomState or None, default=None
        Ignored: the fit is deterministic. Present for consistency with the other models.

    Attributes
    ----------
    stacks_ : tuple
        One predictor per target, each with its hyperparameters.
    target_scale_ : TargetScale
        Mean and standard deviation of each target.

    References
    ----------
    .. [1] Rasmussen, Williams (2006). Gaussian Processes for Machine Learning. MIT Press.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> mean, std = GPRegressor().fit(X[:100], y[:100]).predict(X[100:103], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    def fit(self, X: Any, y: Any) -> GPRegressor:
        """Fit to samples X (n_samples, n_features) and targets y (n_samples,) or (n_samples, n_targets)."""
        with whole_fit(self):
            X, Y = self._read(X, y)
            check_exact_size(len(X), "use SDRGPRegressor(n_prototypes=...), or fit a part of them")
            # Adam starts at fixed length scales, as in the paper, so it takes the features on the scale they have.
            scales = feature_spread(X) if self.gp_optimizer == "lbfgs" else np.ones(X.shape[1])
            training = self._regression_training()
            with workers(self.n_jobs) as pool:  # one thread per target
                found = pool.run(lambda t, _: train(X, Y[:, t], training, scales), Y.shape[1])
                processes = [{"inputs": ExactGP(X, y, gp)} for y, gp in zip(Y.T, found, strict=True)]
                # The paper's GP, trained by Adam, has no rescaling of the variance.
                self.stacks_ = tuple(Stack.of(process, rescaled=self.gp_optimizer == "lbfgs") for process in processes)
        return self

    def _views(self, X: Array) -> dict[str, Array]:
        return {"inputs": X}

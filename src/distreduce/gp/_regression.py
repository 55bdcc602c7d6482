"""GPRegressor, a GP on the features themselves, and the base of the GP regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.threads import single_threaded_blas, workers
from distreduce._utils.typing import Array, Index
from distreduce.estimators._fit_context import warn_about_few, whole_fit
from distreduce.estimators._targets import read_known_numbers
from distreduce.estimators._validate import read_weights
from distreduce.exceptions import InvalidInputError
from distreduce.gp._estimator import BaseGP, by_chunks, read_new_samples
from distreduce.gp._exact import ExactGP, MergedRows, check_exact_size
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._stack import Stack, check_coverage, check_quantiles
from distreduce.gp._target_scale import TargetScale, feature_spread
from distreduce.sharding.dask_rows import compute, is_dask, predict_by_blocks


class BaseGPRegressor(RegressorMixin, MultiOutputMixin, BaseGP):
    """A regressor with one :class:`Stack` per target in ``stacks_``; subclasses define the views of X they see."""

    @property
    def _follows_paper(self) -> bool:
        """Whether predictions have no limits, as those of a plain GP."""
        return True

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> tuple[Array, Array, Array, Index | None]:
        """Return X, the standardised targets (n, c), the weights and the groups; set ``target_scale_``."""
        X = self._read_inputs(X, y)
        y, weights = read_known_numbers(compute(y), len(X)), read_weights(sample_weight, X)
        warn_about_few(int((weights > 0).sum()), "predictions and intervals")
        blocks = self._read_groups(groups, weights)
        X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        scale = TargetScale.of(y, weights)
        self.target_scale_ = scale if self._follows_paper else scale.limit(y)
        return X, self.target_scale_.standardise(y).reshape(len(y), -1), weights, blocks

    def _views(self, X: Array, names: Sequence[str]) -> dict[str, Array]:
        raise NotImplementedError

    def _find_prototypes(self, X: Array) -> Index:
        return np.zeros(len(X), dtype=np.intp)  # there are none

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
                raise InvalidInputError("return_cov needs all samples in one place; give fewer, as a NumPy array.")
            return predict_by_blocks(self, "predict", X, return_std=return_std)
        X = read_new_samples(self, X)
        found = zip(*(stack.unwarp(*moments) for stack, moments in self._latent(X)), strict=True)
        mean, std = self.target_scale_.in_units(*(np.stack(part, axis=1) for part in found))
        if not return_cov:
            return (mean, std) if return_std else mean
        with single_threaded_blas():
            return mean, self._covariance(np.asarray(X, dtype=np.float64), std)

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
        levels = check_quantiles(quantiles)
        if is_dask(X):
            return predict_by_blocks(self, "predict_quantiles", X, quantiles=tuple(quantiles))
        X = read_new_samples(self, X)
        found = [stack.quantiles(mean, np.sqrt(variance), levels) for stack, (mean, variance) in self._latent(X)]
        return self.target_scale_.place(np.stack(found, axis=1))

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "model") -> Array:
        """Predict intervals that hold the target with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        coverage : float, default=0.9
            Probability of the interval.
        method : {"model", "conformal", "mondrian"}, default="model"
            "model" takes central quantiles of the predictive distribution. "conformal" takes order statistics of the
            left-out errors (cross-conformal prediction [1]_): it assumes no distribution, and its coverage holds for
            targets of any shape. With few samples an interval may be unbounded. "mondrian" does the same with the
            left-out errors of the sample's prototype alone: its coverage holds within each prototype. Fit with an
            `n_prototypes` far below the number of samples. A prototype with too few errors (less than 19 for
            a coverage of 0.9) has the "conformal" interval, or the range of its own errors where that is wider.

        Returns
        -------
        array of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in the units of y.

        References
        ----------
        .. [1] Barber, Candes, Ramdas, Tibshirani (2021). Predictive inference with the jackknife+. Annals of
           Statistics 49(1).
        """
        check_coverage(coverage)
        if method not in ("model", "conformal", "mondrian"):
            raise InvalidInputError(f'method={method!r} must be "model", "conformal" or "mondrian".')
        if is_dask(X):
            return predict_by_blocks(self, "predict_interval", X, coverage=coverage, method=method)
        if method == "model":
            return self.predict_quantiles(X, ((1 - coverage) / 2, (1 + coverage) / 2))
        X = read_new_samples(self, X)
        within = self._find_prototypes(X) if method == "mondrian" else None
        found = [stack.interval(*moments, coverage, within) for stack, moments in self._latent(X)]
        return self.target_scale_.place(np.stack(found, axis=1))

    def log_density(self, X: Any, y: Any) -> Array:
        """Log density of targets under the predictive distribution, in the units of y: (n_samples,) or with targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            Log densities.
        """
        X = read_new_samples(self, X)
        table = self.target_scale_.standardise(read_known_numbers(y, len(X))).reshape(len(X), -1)
        found = [
            stack.log_density(mean, np.sqrt(variance), table[:, t])
            for t, (stack, (mean, variance)) in enumerate(self._latent(X))
        ]
        densities = np.stack(found, axis=1) - np.log(self.target_scale_.std)
        return np.asarray(densities if self.target_scale_.is_table else densities[:, 0])

    def _latent(self, X: Array) -> list[tuple[Stack, tuple[Array, Array]]]:
        """Every stack with the mean and variance of what it learned, at validated samples."""
        names = sorted({name for stack in self.stacks_ for name in stack.view_names})

        def predict(chunk: Array) -> list[tuple[Array, Array]]:
            views = self._views(chunk, names)
            return [stack.moments(views) for stack in self.stacks_]

        with workers(self.n_jobs) as pool:
            parts = by_chunks(predict, X, pool)
        return [
            (stack, (np.concatenate([mean for mean, _ in own]), np.concatenate([variance for _, variance in own])))
            for stack, own in zip(self.stacks_, zip(*parts, strict=True), strict=True)
        ]

    def _covariance(self, X: Array, std: Array) -> Array:
        """Joint covariance of the samples in the units of y: correlations of the stacks, deviations `std`."""
        views = self._views(X, sorted({name for stack in self.stacks_ for name in stack.view_names}))
        found = []
        for stack, deviation in zip(self.stacks_, std.reshape(len(X), -1).T, strict=True):
            covariance = stack.covariance(views)
            ratio = deviation / np.sqrt(covariance.diagonal())
            found.append(covariance * np.outer(ratio, ratio))
        covariances = np.stack(found, axis=-1)
        return np.asarray(covariances if self.target_scale_.is_table else covariances[..., 0])


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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GPRegressor:
        """Fit to samples X (n_samples, n_features) and targets y (n_samples,) or (n_samples, n_targets).

        A `sample_weight` of two counts as two copies of a sample. Samples with equal features are merged into one.
        """
        with whole_fit(self):
            X, Y, weights, _ = self._read(X, y, sample_weight)
            check_exact_size(len(X), "use SDRGPRegressor(n_prototypes=...), or fit a part of them")
            # Adam starts at fixed length scales, as in the paper, so it takes the features on the scale they have.
            scales = feature_spread(X, weights) if self.gp_optimizer == "lbfgs" else np.ones(X.shape[1])
            training, start = self._training(lbfgs_steps=200, adam_steps=20), Hyperparameters.start(scales)
            rows = [MergedRows.of(X, Y[:, [t]], weights) for t in range(Y.shape[1])]
            with workers(self.n_jobs) as pool:  # one thread per target
                found = pool.run(lambda t, _: training(rows[t].likelihood, start), Y.shape[1])
                processes = [
                    ExactGP(row.inputs, row.targets[:, 0], learned, weights=row.weights)
                    for row, learned in zip(rows, found, strict=True)
                ]
                # The paper's GP, trained by Adam, has no rescaling of the variance.
                rescaled = self.gp_optimizer == "lbfgs"
                self.stacks_ = tuple(Stack.of_exact("inputs", gp, rescaled=rescaled) for gp in processes)
        return self

    def _views(self, X: Array, names: Sequence[str]) -> dict[str, Array]:
        return {"inputs": X}

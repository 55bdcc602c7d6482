"""Exact GPs on the features themselves: the comparators of the SDR-GPs, and the GPs that EmbeddingGP uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from distreduce._utils.threads import single_threaded_blas, workers
from distreduce._utils.typing import Array
from distreduce.estimators._transaction import whole_fit
from distreduce.estimators._validate import own_generator
from distreduce.gp._classification import BaseGPClassifier
from distreduce.gp._exact import ExactGP, check_exact_size, train
from distreduce.gp._regression import BaseGPRegressor
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import feature_spread


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
                self.stacks_ = tuple(Stack.of(process, rescaled=self.gp_optimizer == "lbfgs") for process in processes)
        return self

    def _views(self, X: Array) -> dict[str, Array]:
        return {"inputs": X}


class GPClassifier(BaseGPClassifier):
    """Exact Gaussian-process classification with the Dirichlet likelihood [1]_ and an RBF-ARD kernel on the features.

    Parameters
    ----------
    alpha_epsilon : float, default=0.01
        Concentration of the Dirichlet likelihood.
    n_draws : int, default=256
        Number of posterior draws that each probability averages over.
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" maximises the marginal likelihood to convergence; "adam" takes `gp_steps` steps from GPyTorch's usual
        start, as in the paper.
    gp_steps : int or None, default=None
        Number of iterations; None is 50.
    gp_lr : float, default=0.1
        Learning rate of Adam.
    n_jobs : int or None, default=None
        Ignored: the classes share one factorisation. Present for consistency with the other models.
    random_state : int, RandomState or None, default=None
        Seed of the posterior draws, and of the samples that hyperparameters are learned from if there are many.

    Attributes
    ----------
    gp_ : DirichletGP
        Posterior of the latent functions.
    classes_ : array
        Labels in the order of the columns of the probabilities.
    draws_ : (n_draws, n_classes) array
        Standard normal draws that the probabilities average over.
    feature_spread_ : (d,) array
        What each feature is divided by before the GP sees it.

    References
    ----------
    .. [1] Milios et al. (2018). Dirichlet-based Gaussian processes for large-scale calibrated classification. NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GPClassifier(random_state=0).fit(X, y).predict_proba(X[:2]).shape
    (2, 3)
    """

    def fit(self, X: Any, y: Any) -> GPClassifier:
        """Fit to samples X (n_samples, n_features) and their labels y (n_samples,)."""
        with whole_fit(self):
            X, labels = self._read(X, y)
            check_exact_size(len(X), "fit a part of them")
            # As in the regressor, Adam takes the features on the scale they have.
            self.feature_spread_ = feature_spread(X) if self.gp_optimizer == "lbfgs" else np.ones(X.shape[1])
            with single_threaded_blas():
                self._fit_gp(X / self.feature_spread_, labels, own_generator(self.random_state))
        return self

    def _view(self, X: Array) -> Array:
        return X / self.feature_spread_

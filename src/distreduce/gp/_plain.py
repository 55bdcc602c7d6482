"""The plain exact GPs on X: the honest comparators, and the GPs that EmbeddingGP puts on an embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

from distreduce._utils.threads import single_threaded_blas, workers
from distreduce._utils.typing import Array
from distreduce.estimators._transaction import whole_fit
from distreduce.estimators._validate import own_generator
from distreduce.gp._classification import BaseGPClassifier
from distreduce.gp._exact import ExactGP, train
from distreduce.gp._regression import BaseGPRegressor, refuse_large
from distreduce.gp._stack import Stack
from distreduce.gp._target_scale import feature_spread


class GPRegressor(BaseGPRegressor):
    """Exact Gaussian process with an RBF-ARD kernel on the features as they are.

    Parameters
    ----------
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" maximises the marginal likelihood to convergence; "adam" takes `gp_steps` steps of `gp_lr` from
        GPyTorch's usual start, as the paper trains.
    gp_steps : int or None, default=None
        Iterations; None is at most 200 for L-BFGS, 20 for Adam.
    gp_lr : float, default=0.1
        Adam's learning rate.
    n_jobs : int or None, default=None
        Threads, at most one a target; None uses every core.
    random_state : int, RandomState or None
        Not needed: the fit has no randomness. Kept so that all models are called alike.

    Attributes
    ----------
    stacks_ : tuple
        One predictor a target, each with its hyperparameters.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> mean, std = GPRegressor().fit(X[:100], y[:100]).predict(X[100:103], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    def __init__(
        self,
        *,
        gp_optimizer: str = "lbfgs",
        gp_steps: int | None = None,
        gp_lr: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.gp_optimizer = gp_optimizer
        self.gp_steps = gp_steps
        self.gp_lr = gp_lr
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> GPRegressor:
        """Fit to samples X (n_samples, n_features) and targets y (n_samples,) or (n_samples, n_targets)."""
        with whole_fit(self):
            X, Y = self._read(X, y)
            refuse_large(len(X), "use SDRGPRegressor(n_prototypes=...), or fit a part of them")
            # Adam starts at fixed length scales, as the paper's does: features are taken on the scale they have.
            scales = feature_spread(X) if self.gp_optimizer == "lbfgs" else np.ones(X.shape[1])
            with workers(self.n_jobs) as pool:  # a thread a target
                found = pool.run(lambda t, _: train(X, Y[:, t], self._training(), scales), Y.shape[1])
                processes = [{"inputs": ExactGP(X, y, gp)} for y, gp in zip(Y.T, found, strict=True)]
                self.stacks_ = tuple(Stack.of(process, rescaled=self.gp_optimizer == "lbfgs") for process in processes)
        return self

    def _views(self, X: Array) -> dict[str, Array]:
        return {"inputs": X}


class GPClassifier(BaseGPClassifier):
    """Exact Gaussian process with the Dirichlet likelihood and an RBF-ARD kernel on the features as they are.

    Parameters
    ----------
    alpha_epsilon : float, default=0.01
        Concentration of the Dirichlet likelihood.
    n_draws : int, default=256
        Posterior samples behind each probability.
    gp_optimizer, gp_steps, gp_lr, n_jobs
        As in :class:`GPRegressor`, with 50 iterations by default.
    random_state : int, RandomState or None
        Seed of the posterior draws, and of the samples that hyperparameters are learned from if there are many.

    Attributes
    ----------
    gp_ : DirichletGP
        Posterior of the latent functions.
    classes_ : array
        Labels in the order of the probabilities' columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GPClassifier(random_state=0).fit(X, y).predict_proba(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        *,
        alpha_epsilon: float = 0.01,
        n_draws: int = 256,
        gp_optimizer: str = "lbfgs",
        gp_steps: int | None = None,
        gp_lr: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha_epsilon = alpha_epsilon
        self.n_draws = n_draws
        self.gp_optimizer = gp_optimizer
        self.gp_steps = gp_steps
        self.gp_lr = gp_lr
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> GPClassifier:
        """Fit to samples X (n_samples, n_features) and their labels y (n_samples,)."""
        with whole_fit(self):
            X, labels = self._read(X, y)
            refuse_large(len(X), "fit a part of them")
            # As in the regressor, Adam takes features on the scale they have.
            self.feature_spread_ = feature_spread(X) if self.gp_optimizer == "lbfgs" else np.ones(X.shape[1])
            with single_threaded_blas():
                self._fit_gp(X / self.feature_spread_, labels, own_generator(self.random_state))
        return self

    def _view(self, X: Array) -> Array:
        return X / self.feature_spread_

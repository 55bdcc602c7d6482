"""GPClassifier, a GP on the features themselves, and the base of the GP classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array, Index
from distreduce.estimators._fit_context import warn_about_few, whole_fit
from distreduce.estimators._targets import read_known_labels
from distreduce.estimators._validate import own_generator, read_weights
from distreduce.gp._crossfit import arrange
from distreduce.gp._dirichlet import DirichletTargets, NegativeLogLikelihood, expected_probabilities, fit_means
from distreduce.gp._estimator import BaseGP
from distreduce.gp._exact import check_exact_size, find_batches
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.gp._target_scale import feature_spread
from distreduce.kernels import RBF
from distreduce.sharding.dask_rows import compute, is_dask, predict_by_blocks

# All classes share the hyperparameters: more samples hardly move them, and each evaluation takes n³ operations.
TRAINING_SAMPLES = 1000


@dataclass(eq=False)
class DirichletGP:
    """Posterior of the latent functions of all classes given n inputs.

    Labels are numbers 0 … C − 1, `alpha_epsilon` is the concentration of the likelihood; classes share one kernel.
    """

    inputs: Array
    labels: Index
    n_classes: int
    alpha_epsilon: float
    hyperparameters: Hyperparameters

    def __post_init__(self) -> None:
        targets = DirichletTargets.of(self.labels, self.n_classes, self.alpha_epsilon)
        with single_threaded_blas():  # a loaded model must have the same bits with any number of threads
            self._posterior, self.means = fit_means(self._covariance(self.inputs), self.hyperparameters.noise, targets)

    def _covariance(self, others: Array) -> Array:
        scales = self.hyperparameters.length_scales
        return np.asarray(self.hyperparameters.signal * RBF(1.0)(others / scales, self.inputs / scales))

    def probabilities(self, inputs: Array, draws: Array) -> Array:
        """Probability of each class (t, C), in batches of bounded size."""
        out = np.empty((len(inputs), len(self.means)))
        # A row takes one covariance per training input and one value per draw and class; the larger count decides.
        for rows in find_batches(len(inputs), max(len(self.inputs), draws.size)):
            deviation, variance = self._posterior.moments(self._covariance(inputs[rows]), self.hyperparameters.signal)
            out[rows] = expected_probabilities(self.means + deviation, variance, draws)
        return out


def draw_from_every_class(labels: Index, size: int, random_state: RandomState) -> Index:
    """All rows, or `size` of them drawn at random, at least one of each class."""
    if len(labels) <= size:
        return np.arange(len(labels))
    # One random member of each class comes first, so that the cut at `size` keeps every class.
    order = random_state.permutation(len(labels))
    _, first = np.unique(labels[order], return_index=True)
    return np.sort(np.r_[order[first], np.delete(order, first)][:size])


class BaseGPClassifier(ClassifierMixin, BaseGP):
    """A classifier with one :class:`DirichletGP` in ``gp_``; subclasses define the view of X it sees."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseGP._parameter_constraints,
        "alpha_epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
    }

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
        super().__init__(
            gp_optimizer=gp_optimizer, gp_steps=gp_steps, gp_lr=gp_lr, n_jobs=n_jobs, random_state=random_state
        )
        self.alpha_epsilon = alpha_epsilon
        self.n_draws = n_draws

    def _read(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> tuple[Array, Index, Array, Index | None]:
        """Return X, the class numbers, the weights and the groups; set ``classes_``."""
        X = self._read_inputs(X, y)
        self.classes_, labels = read_known_labels(compute(y), len(X))
        weights = read_weights(sample_weight, X)
        warn_about_few(int((weights > 0).sum()), "probabilities")
        blocks = self._read_groups(groups, weights)
        return X[weights > 0], labels[weights > 0], weights[weights > 0], blocks

    def _fit_gp(self, inputs: Array, labels: Index, random_state: RandomState) -> None:
        n_classes, d = len(self.classes_), inputs.shape[1]
        # Every class needs a member, so with more classes than TRAINING_SAMPLES the limit is their number.
        rows = draw_from_every_class(labels, max(TRAINING_SAMPLES, n_classes), random_state)
        targets = DirichletTargets.of(labels[rows], n_classes, self.alpha_epsilon)
        # A length scale per dimension that is typical for distances in all of them.
        training, start = self._training(lbfgs_steps=50, adam_steps=50), Hyperparameters.start(np.full(d, np.sqrt(d)))
        found = training(NegativeLogLikelihood(inputs[rows], targets), start)
        # Predictions use all samples, whichever the hyperparameters were learned from.
        self.gp_ = DirichletGP(inputs, labels, n_classes, self.alpha_epsilon, found)
        # Kept, so that every call gives the same probabilities.
        self.draws_ = random_state.standard_normal((self.n_draws, n_classes))

    def _view(self, X: Array) -> Array:
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of ``classes_``: (n_samples, n_classes)."""
        check_is_fitted(self)
        if is_dask(X):
            return predict_by_blocks(self, "predict_proba", X)
        inputs = self._view(validate_data(self, X, reset=False, dtype=np.float64))
        with single_threaded_blas():
            return self.gp_.probabilities(inputs, self.draws_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each sample: (n_samples,)."""
        if is_dask(X):
            return predict_by_blocks(self, "predict", X)
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])


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
        """Fit to samples X (n_samples, n_features) and their labels y (n_samples,).

        There are no weights: copies of a sample count once, because this likelihood would believe them all.
        """
        with whole_fit(self):
            X, labels, weights, _ = self._read(X, y)
            check_exact_size(len(X), "fit a part of them")
            # As in the regressor, Adam takes the features on the scale they have.
            self.feature_spread_ = feature_spread(X) if self.gp_optimizer == "lbfgs" else np.ones(X.shape[1])
            # Copies, also with a little noise, say nothing new: one of each is used.
            inputs = X / self.feature_spread_
            arranged = arrange(inputs, np.eye(len(self.classes_))[labels], weights)
            once = np.unique(np.c_[arranged.groups, labels[arranged.order]], axis=0, return_index=True)[1]
            rows = np.sort(arranged.order[once])
            with single_threaded_blas():
                self._fit_gp(inputs[rows], labels[rows], own_generator(self.random_state))
        return self

    def _view(self, X: Array) -> Array:
        return X / self.feature_spread_

"""Base of the GP classifiers: the posterior of the latent functions, and class probabilities from it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array, Index
from distreduce.estimators._targets import read_known_labels
from distreduce.gp._dirichlet import DirichletTargets, NegativeLogLikelihood, expected_probabilities, fit_means
from distreduce.gp._estimator import BaseGP
from distreduce.gp._exact import BATCH_NUMBERS
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.kernels import RBF
from distreduce.sharding.dask_collections import compute, is_dask, predict_by_blocks

# All classes share the hyperparameters: more samples hardly move them, and each evaluation takes n³ operations.
TRAINING_SAMPLES = 1000


class DirichletGP:
    """Posterior of the latent functions of all classes given n inputs.

    Parameters
    ----------
    inputs : (n, d) array
        Training inputs.
    labels : (n,) array
        Class numbers 0 … C − 1.
    n_classes : int
        Number C of classes.
    alpha_epsilon : float
        Concentration α_ε of the likelihood.
    hyperparameters : Hyperparameters
        Hyperparameters of the kernel, which all classes share.
    """

    def __init__(
        self, inputs: Array, labels: Index, n_classes: int, alpha_epsilon: float, hyperparameters: Hyperparameters
    ) -> None:
        self.inputs, self.labels, self.hyperparameters = inputs, labels, hyperparameters
        self.alpha_epsilon = alpha_epsilon
        targets = DirichletTargets.of(labels, n_classes, alpha_epsilon)
        with single_threaded_blas():  # a loaded model must have the same bits with any number of threads
            self._posterior, self.means = fit_means(self._covariance(inputs), hyperparameters.noise, targets)

    def _covariance(self, others: Array) -> Array:
        scales = self.hyperparameters.length_scales
        return np.asarray(self.hyperparameters.signal * RBF(1.0)(others / scales, self.inputs / scales))

    def probabilities(self, inputs: Array, draws: Array) -> Array:
        """Probability of each class (t, C), in batches of bounded size."""
        out = np.empty((len(inputs), len(self.means)))
        step = max(1, BATCH_NUMBERS // max(len(self.inputs), draws.size))
        for start in range(0, len(inputs), step):
            rows = slice(start, start + step)
            deviation, variance = self._posterior.moments(self._covariance(inputs[rows]), self.hyperparameters.signal)
            out[rows] = expected_probabilities(self.means + deviation, variance, draws)
        return out


def draw_from_every_class(labels: Index, size: int, random_state: np.random.RandomState) -> Index:
    """All rows, or `size` of them drawn at random, at least one of each class."""
    if len(labels) <= size:
        return np.arange(len(labels))
    order = random_state.permutation(len(labels))
    _, first = np.unique(labels[order], return_index=True)
    return np.sort(np.r_[order[first], np.delete(order, first)][:size])


def train_classifier(
    inputs: Array,
    labels: Index,
    n_classes: int,
    alpha_epsilon: float,
    training: Training,
    random_state: np.random.RandomState,
) -> Hyperparameters:
    """Maximise the marginal likelihood of at most `TRAINING_SAMPLES` samples, drawn at random."""
    rows = draw_from_every_class(labels, max(TRAINING_SAMPLES, n_classes), random_state)
    objective = NegativeLogLikelihood(inputs[rows], DirichletTargets.of(labels[rows], n_classes, alpha_epsilon))
    # A length scale per dimension that is typical for distances in all of them.
    return training(objective, np.full(inputs.shape[1], np.sqrt(inputs.shape[1])))


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

    def _read(self, X: Any, y: Any) -> tuple[Array, Index]:
        """Return X and the class numbers; set ``classes_``."""
        X = self._read_inputs(X, y)
        self.classes_, labels = read_known_labels(compute(y), len(X))
        return X, labels

    def _fit_gp(self, inputs: Array, labels: Index, random_state: np.random.RandomState) -> None:
        """Set ``gp_`` and ``draws_``."""
        training, n_classes = self._training(lbfgs_steps=50, adam_steps=50), len(self.classes_)
        found = train_classifier(inputs, labels, n_classes, self.alpha_epsilon, training, random_state)
        self.gp_ = DirichletGP(inputs, labels, n_classes, self.alpha_epsilon, found)
        self.draws_ = random_state.standard_normal((self.n_draws, n_classes))

    def _view(self, X: Array) -> Array:
        """Inputs of the GP at validated samples."""
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

"""What the GP classifiers share: labels, the latent functions, probabilities."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.estimators import SDR
from distreduce.estimators._saving import SavingMixin
from distreduce.estimators._targets import as_array
from distreduce.exceptions import InvalidInputError
from distreduce.gp._dirichlet import DirichletTargets, NegativeLogLikelihood, expected_probabilities, fit_means
from distreduce.gp._hyperparameters import Hyperparameters, Training
from distreduce.kernels import RBF
from distreduce.sharding.dask_collections import brought, gathered, is_dask
from distreduce.sharding.dask_predict import by_blocks

TRAINING_SAMPLES = 1000  # hyperparameters are shared by all classes: more samples hardly move them, at n³ an evaluation
BATCH_NUMBERS = 8_000_000


class DirichletGP:
    """Posterior of the latent functions of all classes given n inputs.

    Parameters
    ----------
    inputs : (n, d) array
        Training inputs.
    labels : (n,) array
        Class numbers 0 … C − 1.
    n_classes : int
        C.
    alpha_epsilon : float
        α_ε of the likelihood.
    hyperparameters : Hyperparameters
        Of the kernel that the classes share.
    """

    def __init__(
        self,
        inputs: Array,
        labels: NDArray[np.intp],
        n_classes: int,
        alpha_epsilon: float,
        hyperparameters: Hyperparameters,
    ) -> None:
        self.inputs, self.labels, self.hyperparameters = inputs, labels, hyperparameters
        self.alpha_epsilon = alpha_epsilon
        targets = DirichletTargets.of(labels, n_classes, alpha_epsilon)
        with single_threaded_blas():  # a loaded model must find the same bits whatever the machine's threads
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


def drawn_from_every_class(
    labels: NDArray[np.intp], size: int, random_state: np.random.RandomState
) -> NDArray[np.intp]:
    """All rows, or `size` of them drawn at random, one of each class first so that none goes missing."""
    if len(labels) <= size:
        return np.arange(len(labels))
    order = random_state.permutation(len(labels))
    _, first = np.unique(labels[order], return_index=True)
    return np.sort(np.r_[order[first], np.delete(order, first)][:size])


def train_classifier(
    inputs: Array,
    labels: NDArray[np.intp],
    n_classes: int,
    alpha_epsilon: float,
    training: Training,
    random_state: np.random.RandomState,
) -> Hyperparameters:
    """Hyperparameters by the marginal likelihood of at most `TRAINING_SAMPLES` samples, drawn at random."""
    rows = drawn_from_every_class(labels, max(TRAINING_SAMPLES, n_classes), random_state)
    objective = NegativeLogLikelihood(inputs[rows], DirichletTargets.of(labels[rows], n_classes, alpha_epsilon))
    # A length scale per dimension that is typical for distances in all of them.
    return training(objective, np.full(inputs.shape[1], np.sqrt(inputs.shape[1])))


class BaseGPClassifier(SavingMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose fitted state is one :class:`DirichletGP`; subclasses say what of X it sees."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha_epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "gp_optimizer": [StrOptions({"lbfgs", "adam"})],
        "gp_steps": [Interval(Integral, 1, None, closed="left"), None],
        "gp_lr": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": SDR._parameter_constraints["n_jobs"],
        "random_state": ["random_state"],
    }

    alpha_epsilon: float
    n_draws: int
    gp_optimizer: str
    gp_steps: int | None
    gp_lr: float
    random_state: Any
    gp_: DirichletGP
    draws_: Array

    def _read(self, X: Any, y: Any) -> tuple[Array, NDArray[np.intp]]:
        """X, and the class numbers; sets ``classes_``."""
        self._validate_params()
        if y is None:
            raise InvalidInputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = brought(y)
        if pd.isna(as_array(y)).any():
            raise InvalidInputError("y has unknown labels (None or NaN); leave these rows out: only SDR can use them.")
        X, y = validate_data(self, gathered(X), y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y has a single class ({self.classes_.tolist()[0]!r}); give samples of two or more classes."
            )
        return X, labels

    def _fit_gp(self, inputs: Array, labels: NDArray[np.intp], random_state: np.random.RandomState) -> None:
        """Set ``gp_`` and ``draws_``."""
        training = Training(self.gp_optimizer, self.gp_steps or 50, self.gp_lr)
        n_classes = len(self.classes_)
        found = train_classifier(inputs, labels, n_classes, self.alpha_epsilon, training, random_state)
        self.gp_ = DirichletGP(inputs, labels, n_classes, self.alpha_epsilon, found)
        self.draws_ = random_state.standard_normal((self.n_draws, n_classes))

    def _view(self, X: Array) -> Array:
        """What the GP sees of validated samples."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of ``classes_``: (n_samples, n_classes)."""
        check_is_fitted(self)
        if is_dask(X):
            return by_blocks(self, "predict_proba", X)
        inputs = self._view(validate_data(self, X, reset=False, dtype=np.float64))
        with single_threaded_blas():
            return self.gp_.probabilities(inputs, self.draws_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each sample."""
        if is_dask(X):
            return by_blocks(self, "predict", X)
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

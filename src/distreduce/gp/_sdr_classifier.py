"""SDRGPClassifier: reduce, then predict classes with a stack of experts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from distreduce._utils.threads import Workers, workers
from distreduce._utils.typing import Array, Index
from distreduce.estimators._mixins import Translation
from distreduce.exceptions import InvalidInputError
from distreduce.gp._class_stack import ClassStack
from distreduce.gp._classification import BaseGPClassifier
from distreduce.gp._estimator import by_chunks, read_new_samples
from distreduce.gp._exact import check_exact_size
from distreduce.gp._reduce import PAPER, ReducingGP
from distreduce.gp._stack import check_coverage
from distreduce.sharding.dask_rows import is_dask, predict_by_blocks


def _translate_factor(factor: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`length_scale_factor` multiplied the median length scale, which has a name now."""
    return {"length_scale": "median" if factor == 1.0 else "auto"}


class SDRGPClassifier(ReducingGP, BaseGPClassifier):
    """Classification with honest probabilities on a supervised distributional reduction [1]_.

    SDR reduces the samples, and a stack of experts predicts the classes: a Gaussian process on the embedding, three on
    the features (smooth, rough, and with one length scale for all features), a linear model, a random forest and
    gradient boosting. Everything the stack knows of its experts, how sure they may be [2]_ and their weights [3]_, it
    learns from samples that were left out of them (cross-fitting). Copies of a sample are left out together.

    Parameters
    ----------
    n_components : int, default=10
        Dimension of the embedding; no more than the number of features is needed.
    [shared]
    alpha_epsilon : float, default=0.01
        Concentration of the Dirichlet likelihood [4]_ of the paper's GP; the stack does not use it.
    n_draws : int, default=256
        Number of posterior draws that the probabilities of the paper's GP average over.

    Attributes
    ----------
    reduction_ : SDR
        The reduction, fitted to ``X / input_scale_``.
    input_scale_ : (d,) array
        What each feature is divided by.
    embedding_scale_ : float
        What the embedding is divided by before its GP sees it.
    stack_ : ClassStack
        The predictor: its experts (`processes`), their `weights` and `temperatures`. Not with the paper's recipe.
    gp_ : DirichletGP
        The paper's GP, if it predicts alone.
    draws_ : (n_draws, n_classes) array
        Standard normal draws that its probabilities average over.
    classes_ : array
        Labels in the order of the columns of the probabilities.
    novelty_ : Novelty
        Training samples and their distances, which :meth:`novelty` compares with.

    References
    ----------
    .. [1] Ramesh et al. (2026). Supervised Distributional Reduction via Optimal Transport and Dependence Maximization.
       arXiv:2605.27619.
    .. [2] Guo, Pleiss, Sun, Weinberger (2017). On calibration of modern neural networks. ICML.
    .. [3] Yao, Vehtari, Simpson, Gelman (2018). Using stacking to average Bayesian predictive distributions. Bayesian
       Analysis 13(3).
    .. [4] Milios et al. (2018). Dirichlet-based Gaussian processes for large-scale calibrated classification. NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDRGPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SDRGPClassifier(2, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, round(model.score(X, y), 1)
    ((2, 3), 1.0)
    """

    _parameter_constraints = {**BaseGPClassifier._parameter_constraints, **ReducingGP._reduction_constraints}
    _renamed: ClassVar[Mapping[str, Translation]] = {**ReducingGP._renamed, "length_scale_factor": _translate_factor}

    def __init__(
        self,
        n_components: int = 10,
        *,
        n_prototypes: int | None = None,
        eta: float | str = "auto",
        perplexity: float = 20.0,
        length_scale: Any = "auto",
        map_reg: float | str = "auto",
        training_inputs: str = "left_out",
        feature_scaling: str = "auto",
        residual: bool = True,
        experts: Any = None,
        max_reduction_samples: int = 2000,
        alpha_epsilon: float = 0.01,
        n_draws: int = 256,
        gp_optimizer: str = "lbfgs",
        gp_steps: int | None = None,
        gp_lr: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            n_components, n_prototypes=n_prototypes, eta=eta, perplexity=perplexity, length_scale=length_scale,
            map_reg=map_reg, training_inputs=training_inputs, feature_scaling=feature_scaling, residual=residual,
            experts=experts, max_reduction_samples=max_reduction_samples, gp_optimizer=gp_optimizer, gp_steps=gp_steps,
            gp_lr=gp_lr, n_jobs=n_jobs, random_state=random_state, verbose=verbose, checkpoint=checkpoint,
        )  # fmt: skip
        self.alpha_epsilon = alpha_epsilon
        self.n_draws = n_draws

    @classmethod
    def paper(cls, n_components: int = 10, **parameters: Any) -> SDRGPClassifier:
        """The paper's SDR-GP: fixed length scale, lambda 0.01, eta 1000, a GP of 50 Adam steps on the embedding."""
        return cls(n_components, **{**PAPER, "feature_scaling": "none", "gp_steps": 50, **parameters})

    def _fit_read(
        self, X: Array, labels: Index, weights: Array, groups: Index | None, random_state: Any, fitting: Any,
        pool: Workers,
    ) -> None:  # fmt: skip
        """Reduce, and learn a stack of the classes, or the paper's GP."""
        indicators = np.eye(len(self.classes_))[labels]
        self._scale_features(X, indicators, weights, groups)
        # SDR gets the labels themselves, so that its fitted attributes name them.
        y = self.classes_[labels]
        arranged, embedded = self._reduce(X, indicators, y, weights, random_state, groups, fitting)
        if self._follows_paper:
            check_exact_size(len(X), "the paper's recipe has no other; use the defaults")
            self._fit_gp(embedded, labels, random_state)
        else:
            seed = int(random_state.randint(2**31 - 1))
            learn = partial(ClassStack.of, weights=arranged.evidence)
            self.stack_ = self._cross_fit(X, arranged, embedded, indicators, learn, pool, seed)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of ``classes_``: (n_samples, n_classes)."""
        check_is_fitted(self)
        if not hasattr(self, "stack_") or is_dask(X):
            return super().predict_proba(X)
        X = read_new_samples(self, X)
        names = list(self.stack_.used())
        with workers(self.n_jobs) as pool:
            return np.concatenate(by_chunks(lambda part: self.stack_.probabilities(self._views(part, names)), X, pool))

    def predict_set(self, X: Any, coverage: float = 0.9, per_class: bool = False) -> Array:
        """Predict sets of classes that hold the true one with a given probability (conformal prediction).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        coverage : float, default=0.9
            Probability that a set holds the true class.
        per_class : bool, default=False
            Whether this holds within each class, instead of for all samples together. A class of too few samples (less
            than 9 for a coverage of 0.9) follows the rule for all samples, or a milder one that all of its own pass.

        Returns
        -------
        array of bool of shape (n_samples, n_classes)
            Which classes are in the set of each sample. A set is never empty.
        """
        check_coverage(coverage)
        check_is_fitted(self)
        if not hasattr(self, "stack_"):
            raise InvalidInputError(
                "predict_set needs left-out probabilities, which the paper's recipe has not; use the defaults."
            )
        if is_dask(X):
            return predict_by_blocks(self, "predict_set", X, coverage=coverage, per_class=per_class)
        probabilities = self.predict_proba(X)
        inside = probabilities >= self.stack_.threshold(coverage, len(self.classes_) if per_class else None)
        # The most probable class is always in, even where all are improbable.
        inside[np.arange(len(inside)), probabilities.argmax(axis=1)] = True
        return inside

    def _view(self, X: Array) -> Array:
        return self._embed(X) / self.embedding_scale_

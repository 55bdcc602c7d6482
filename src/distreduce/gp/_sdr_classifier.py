"""SDRGPClassifier: reduce, then classify with a Dirichlet-likelihood Gaussian process."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array, Index
from distreduce.estimators._renamed import Translation
from distreduce.estimators._transaction import whole_fit
from distreduce.estimators._validate import check_spread, own_generator, power_of_two_unit, require_seed
from distreduce.exceptions import InvalidInputError
from distreduce.gp._classification import BaseGPClassifier, draw_from_every_class
from distreduce.gp._exact import check_exact_size
from distreduce.gp._reduce import ReducingGP, choose_map, embed_left_out
from distreduce.sharding.merge import merge_duplicates
from distreduce.solver.input_kernel import median_length_scale


class SDRGPClassifier(ReducingGP, BaseGPClassifier):
    """Gaussian-process classification on a supervised distributional reduction [1]_.

    SDR reduces the samples. An exact GP with the Dirichlet likelihood [2]_ predicts the classes from the embedding. It
    is trained on leave-one-out embeddings, so that it knows how good the map is on new samples. Features are used on
    the scale they have, as in SDR: standardise them unless their scales mean something (pixels do).

    Parameters
    ----------
    n_components : int, default=10
        Dimension of the embedding; no more than the number of features is needed.
    n_prototypes : int or None, default=None
        Number of prototypes of the reduction, as in :class:`SDR`. None: every sample is a prototype and a training
        input of the GP, for up to 10,000 samples. With a number, at most `max_reduction_samples` samples are used.
    eta : float or "auto", default=10000.0
        Weight of the classes in the reduction. Ten times the default of SDR, because the embedding is for prediction.
    perplexity : float, default=20.0
        Effective number of neighbours in the affinity of the reduction; at most a third of the samples.
    length_scale_factor : float or "auto", default="auto"
        Length scale of the map's kernel divided by that of the median heuristic; 1 is the paper's. "auto" chooses it
        together with `map_reg` by the squared error of left-out classes: 0.5 and 0.01 if the labels have little noise,
        a smoother map otherwise.
    map_reg : float or "auto", default="auto"
        Ridge penalty of the out-of-sample map; "auto" chooses it together with `length_scale_factor`.
    training_inputs : {"left_out", "fitted"}, default="left_out"
        Training inputs of the GP: leave-one-out embeddings, or the fitted embedding, which has seen y.
    max_reduction_samples : int, default=4000
        With `n_prototypes`, the largest number of samples to use, drawn at random from all classes.
    alpha_epsilon : float, default=0.01
        Concentration of the Dirichlet likelihood.
    n_draws : int, default=256
        Number of posterior draws that each probability averages over.
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" maximises the marginal likelihood to convergence; "adam" takes `gp_steps` steps, as in the paper.
    gp_steps : int or None, default=None
        Number of iterations; None is 50.
    gp_lr : float, default=0.1
        Learning rate of Adam.
    n_jobs : int or None, default=None
        Number of threads of the reduction; None uses every core.
    random_state : int, RandomState or None, default=None
        Seed of the reduction's start, of the drawn samples and of the posterior draws.
    verbose : int, default=0
        1 shows the progress of the reduction.
    checkpoint : str, path-like or None, default=None
        File that keeps the state of the reduction, as in :class:`SDR`. The GP is trained again.

    Attributes
    ----------
    reduction_ : SDR
        The fitted reduction.
    gp_ : DirichletGP
        Posterior of the latent functions.
    draws_ : (n_draws, n_classes) array
        Standard normal draws that the probabilities average over.
    embedding_scale_ : float
        What the embedding is divided by before the GP sees it.
    classes_ : array
        Labels in the order of the columns of the probabilities.

    References
    ----------
    .. [1] Ramesh et al. (2026). Supervised Distributional Reduction via Optimal Transport and Dependence Maximization.
       arXiv:2605.27619.
    .. [2] Milios et al. (2018). Dirichlet-based Gaussian processes for large-scale calibrated classification. NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce import SDRGPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SDRGPClassifier(2, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, round(model.score(X, y), 1)
    ((2, 3), 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseGPClassifier._parameter_constraints,
        **ReducingGP._reduction_constraints,
        "length_scale_factor": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }
    _renamed: ClassVar[Mapping[str, Translation]] = {
        **ReducingGP._renamed,
        "length_scale": lambda factor, parameters: {"length_scale_factor": factor},
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        n_prototypes: int | None = None,
        eta: float | str = 10_000.0,
        perplexity: float = 20.0,
        length_scale_factor: float | str = "auto",
        map_reg: float | str = "auto",
        training_inputs: str = "left_out",
        max_reduction_samples: int = 4000,
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
        self.n_components = n_components
        self.n_prototypes = n_prototypes
        self.eta = eta
        self.perplexity = perplexity
        self.length_scale_factor = length_scale_factor
        self.map_reg = map_reg
        self.training_inputs = training_inputs
        self.max_reduction_samples = max_reduction_samples
        self.alpha_epsilon = alpha_epsilon
        self.n_draws = n_draws
        self.gp_optimizer = gp_optimizer
        self.gp_steps = gp_steps
        self.gp_lr = gp_lr
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @classmethod
    def paper(cls, n_components: int = 10, **parameters: Any) -> SDRGPClassifier:
        """The paper's SDR-GP: fixed length scale, lambda 0.01, eta 1000, a GP of 50 Adam steps on the embedding."""
        recipe = {"eta": 1000.0, "perplexity": 20.0, "length_scale_factor": 1.0, "map_reg": 0.01,
                  "training_inputs": "fitted", "gp_optimizer": "adam", "gp_steps": 50, "gp_lr": 0.1}  # fmt: skip
        return cls(n_components, **{**recipe, **parameters})

    def fit(self, X: Any, y: Any) -> SDRGPClassifier:
        """Fit to samples and labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        SDRGPClassifier
            The fitted estimator.
        """
        with whole_fit(self) as fitting:
            X, labels = self._read(X, y)
            require_seed(self)
            random_state = own_generator(self.random_state)
            # Reduce, on a sample of the rows if there are prototypes.
            X, labels = self._draw_samples(X, labels, random_state)
            self._reduce(X, labels, random_state)
            fitting.best = self.reduction_  # a NumericalError of the GP still carries it
            # Train the GP on embeddings from maps that have not seen the sample itself.
            with single_threaded_blas():
                embedded = self.reduction_.embedding_
                if self.training_inputs == "left_out":
                    embedded = embed_left_out(self.reduction_, X)
                # Adam starts at fixed length scales, as in the paper, so it takes the embedding on the scale it has.
                self.embedding_scale_ = 1.0
                # One number for all coordinates keeps the geometry of the embedding; a single point has no spread.
                if self.gp_optimizer == "lbfgs":
                    self.embedding_scale_ = float(np.sqrt(embedded.var(axis=0).mean())) or 1.0
                self._fit_gp(embedded / self.embedding_scale_, labels, random_state)
        return self

    def _draw_samples(self, X: Array, labels: Index, random_state: np.random.RandomState) -> tuple[Array, Index]:
        """All samples, or as many as are used with prototypes; raise InvalidInputError if these are too many."""
        if self.n_prototypes is None:
            check_exact_size(len(X), "give n_prototypes, such as 200")
            return X, labels
        if self.max_reduction_samples < len(self.classes_):
            raise InvalidInputError(
                f"max_reduction_samples={self.max_reduction_samples} is less than the {len(self.classes_)} classes; "
                "give at least some samples of each."
            )
        rows = draw_from_every_class(labels, self.max_reduction_samples, random_state)
        check_exact_size(len(rows), f"lower max_reduction_samples={self.max_reduction_samples}")
        return X[rows], labels[rows]

    def _reduce(self, X: Array, labels: Index, random_state: np.random.RandomState) -> None:
        """Choose the map and set ``reduction_``."""
        median = _median_length_scale(X)
        with single_threaded_blas():
            factor, ridge = choose_map(X, labels, median, self.length_scale_factor, self.map_reg)
        # SDR gets the labels themselves, so that its fitted attributes name them.
        y, length_scale = self.classes_[labels], factor * median
        self._fit_reduction(X, y, random_state, task="classification", length_scale=length_scale, map_reg=ridge)

    def _view(self, X: Array) -> Array:
        return self._embed(X) / self.embedding_scale_


def _median_length_scale(X: Array) -> float:
    """The median heuristic, independent of the unit of X and of the order of its rows."""
    # Equal rows count once with their weight, as they do in SDR.
    distinct = merge_duplicates(X, None, np.ones(len(X)))
    check_spread(X, len(distinct.rows), precomputed=False)
    unit = power_of_two_unit(X)
    return unit * median_length_scale(X[distinct.rows] / unit, distinct.weights)

"""SDRGPClassifier: reduce, then classify with a Dirichlet-likelihood Gaussian process."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.estimators import SDR
from distreduce.estimators._checkpoints import require_seed
from distreduce.estimators._renamed import RenamedParametersMixin, Translation, leave_out
from distreduce.estimators._transaction import whole_fit
from distreduce.estimators._validate import check_spread, own_generator, power_of_two_unit
from distreduce.exceptions import InvalidInputError
from distreduce.gp._classification import BaseGPClassifier, drawn_from_every_class
from distreduce.gp._map_choice import chosen_map
from distreduce.gp._reduce import fit_reduction, left_out, most_neighbours
from distreduce.gp._regression import refuse_large
from distreduce.sharding.dask_collections import is_dask
from distreduce.sharding.dask_predict import by_blocks
from distreduce.sharding.merge import merge_duplicates
from distreduce.solver.fit import median_length_scale


class SDRGPClassifier(RenamedParametersMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseGPClassifier):
    """Gaussian-process classification on a supervised distributional reduction.

    SDR reduces the samples; an exact GP with the Dirichlet likelihood (Milios et al., 2018) predicts the classes from
    the embedding, trained on leave-one-out embeddings so that it knows how good the map is on new samples.

    Parameters
    ----------
    n_components : int, default=10
        Dimension of the embedding; at most the number of features is needed.
    n_prototypes : int or None, default=None
        None: every sample is a prototype and a training input of the GP, for up to 10,000 samples. A number m: the
        reduction has m prototypes, and the GP is trained on `max_reduction_samples` samples at most.
    eta : float or "auto", default=10000.0
        Weight of the classes in the reduction. Ten times SDR's own default: here the embedding is for prediction.
    perplexity : float, default=20.0
        Neighbours in the reduction's affinity; a third of the samples where there are few.
    length_scale : float or "auto", default="auto"
        Length scale of the map's kernel in units of the median heuristic's; 1 is the paper's. Features are used on the
        scale they have, as in SDR: standardise them unless their scales mean something (pixels do).
    map_reg : float or "auto", default="auto"
        Ridge of the out-of-sample map. Of both, "auto" takes what carries the classes best to samples that are left
        out: 0.5 and 0.01 where labels have little noise, a smoother map where they have much.
    training_inputs : {"left_out", "fitted"}, default="left_out"
        What the GP is trained on: leave-one-out embeddings, or the embedding as fitted, which has seen y.
    max_reduction_samples : int, default=4000
        With `n_prototypes`, at most this many samples are used, drawn at random from all classes.
    alpha_epsilon : float, default=0.01
        Concentration of the Dirichlet likelihood.
    n_draws : int, default=256
        Posterior samples behind each probability.
    gp_optimizer : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" trains to convergence; "adam" takes `gp_steps` steps of `gp_lr`, the paper's training.
    gp_steps : int or None, default=None
        Iterations; None is 50.
    gp_lr : float, default=0.1
        Adam's learning rate.
    n_jobs : int or None, default=None
        Threads of the reduction.
    random_state : int, RandomState or None
        Seed of the reduction's start, of the samples drawn and of the posterior draws.
    verbose : int, default=0
        1 shows the progress of the reduction.
    checkpoint : str, path-like or None, default=None
        File of the reduction, as in :class:`SDR`; the GPs are trained again.

    Attributes
    ----------
    reduction_ : SDR
        The reduction.
    gp_ : DirichletGP
        Posterior of the latent functions.
    classes_ : array
        Labels in the order of the probabilities' columns.

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
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_prototypes": [Interval(Integral, 2, None, closed="left"), None],
        "eta": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "length_scale": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "map_reg": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "training_inputs": [StrOptions({"left_out", "fitted"})],
        "max_reduction_samples": [Interval(Integral, 2, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": SDR._parameter_constraints["checkpoint"],
    }
    _renamed: ClassVar[Mapping[str, Translation]] = {"checkpoint_every": leave_out}

    def __init__(
        self,
        n_components: int = 10,
        *,
        n_prototypes: int | None = None,
        eta: float | str = 10_000.0,
        perplexity: float = 20.0,
        length_scale: float | str = "auto",
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
        self.length_scale = length_scale
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
        recipe = {"eta": 1000.0, "perplexity": 20.0, "length_scale": 1.0, "map_reg": 0.01, "training_inputs": "fitted",
                  "gp_optimizer": "adam", "gp_steps": 50, "gp_lr": 0.1}  # fmt: skip
        return cls(n_components, **{**recipe, **parameters})

    def fit(self, X: Any, y: Any) -> SDRGPClassifier:
        """Fit to samples X (n_samples, n_features) and their labels y (n_samples,)."""
        with whole_fit(self) as fitting:
            X, labels = self._read(X, y)
            require_seed(self)
            random_state = own_generator(self.random_state)
            if self.n_prototypes is None:
                refuse_large(len(X), "give n_prototypes, such as 200")
            else:
                self._check_size()
                rows = drawn_from_every_class(labels, self.max_reduction_samples, random_state)
                X, labels = X[rows], labels[rows]
                refuse_large(len(X), f"lower max_reduction_samples={self.max_reduction_samples}")
            self._reduce(X, labels, random_state)
            fitting.best = self.reduction_
            with single_threaded_blas():
                embedded = self.reduction_.embedding_
                if self.training_inputs == "left_out":
                    embedded = left_out(self.reduction_, X)
                # Adam starts at fixed length scales, as the paper's does, and takes the embedding on the scale it has.
                self.embedding_scale_ = 1.0
                if self.gp_optimizer == "lbfgs":
                    self.embedding_scale_ = float(np.sqrt(embedded.var(axis=0).mean())) or 1.0
                self._fit_gp(embedded / self.embedding_scale_, labels, random_state)
        return self

    def _check_size(self) -> None:
        if self.max_reduction_samples < len(self.classes_):
            raise InvalidInputError(
                f"max_reduction_samples={self.max_reduction_samples} is less than the {len(self.classes_)} classes; "
                "give at least some samples of each."
            )

    def transform(self, X: Any) -> Array:
        """Place of each sample in the embedding: (n_samples, n_components)."""
        check_is_fitted(self)
        if is_dask(X):
            return by_blocks(self, "transform", X)
        return np.asarray(self.reduction_.transform(validate_data(self, X, reset=False, dtype=np.float64)))

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn's ``get_feature_names_out``."""
        return int(self.reduction_.prototypes_.shape[1])

    def _reduce(self, X: Array, labels: NDArray[np.intp], random_state: np.random.RandomState) -> None:
        """Set ``reduction_``."""
        median = _median_length_scale(X)
        with single_threaded_blas():
            length_scale, ridge = chosen_map(X, labels, median, self.length_scale, self.map_reg)
        reduction = SDR(
            self.n_components,
            n_prototypes=self.n_prototypes,
            eta=self.eta,
            perplexity=min(self.perplexity, most_neighbours(len(X))),
            length_scale=length_scale * median,
            map_reg=ridge,
            task="classification",
            # The identity plan of pure dimensionality reduction is a stationary point already (decision 12).
            max_iter=0 if self.n_prototypes is None else 50,
            n_jobs=self.n_jobs,
            random_state=random_state,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
        )
        self.reduction_ = fit_reduction(reduction, X, self.classes_[labels])

    def _view(self, X: Array) -> Array:
        return np.asarray(self.reduction_.transform(X) / self.embedding_scale_)


def _median_length_scale(X: Array) -> float:
    """The median heuristic, whatever the unit of X and the order of its rows."""
    distinct = merge_duplicates(X, None, np.ones(len(X)))
    check_spread(X, len(distinct.rows), precomputed=False)
    unit = power_of_two_unit(X)
    return unit * median_length_scale(X[distinct.rows] / unit, distinct.weights)

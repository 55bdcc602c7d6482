"""What SDR and DistR share: parameters and constraints on them, `fit`, `transform` and `summary`."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import workers
from distreduce._utils.typing import Array
from distreduce.estimators._auto import MapChoice
from distreduce.estimators._evidence import QUALITY
from distreduce.estimators._fit_context import CallbackSupportMixin, progress, warn_about_fit, watch, whole_fit
from distreduce.estimators._fitted import fitted_attributes
from distreduce.estimators._mixins import OLD_NAMES, DisplayMixin, RenamedParametersMixin, SavingMixin, Translation
from distreduce.estimators._setup import Supervision, set_up_fit
from distreduce.estimators._validate import Backends, reject_masked
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import Kernel
from distreduce.losses import supervised_rows
from distreduce.mapping.inverse import samples_at, slopes
from distreduce.sharding.dask_rows import is_dask, predict_by_blocks
from distreduce.solver.loop import fit_reduction


class BaseReduction(
    RenamedParametersMixin,
    SavingMixin,
    DisplayMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Base of the supervised and the unsupervised reduction. No mathematics: that is in :mod:`distreduce.solver`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_prototypes": [Interval(Integral, 2, None, closed="left"), None],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "map_reg": [Interval(Real, 0, None, closed="neither")],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "loss": [StrOptions({"kl", "square"})],
        "input_kernel": [StrOptions({"rbf", "rq", "linear"}), callable],
        "length_scale": [StrOptions({"median", "ard"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "metric": [StrOptions({"euclidean", "precomputed"})],
        "affinity": [
            StrOptions({"auto", "dense", "sparse", "precomputed"}),
            Interval(Integral, 2, None, closed="left"),
            "array-like",
            "sparse matrix",
        ],
        "init": [
            StrOptions({"auto", "identity", "random", "kmeans", "spectral", "supervised_spectral"}),
            "array-like",
            "sparse matrix",
        ],
        "solver": [StrOptions({"joint", "alternating"})],
        "optimizer": [StrOptions({"lbfgs", "adam"})],
        "beta": [Interval(Real, 0, 1, closed="both")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "max_inner_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "backend": [Backends({"auto", "numba", "numpy", "torch"})],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }
    _renamed: ClassVar[Mapping[str, Translation]] = OLD_NAMES

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_prototypes: int | str | None = None,
        mu: float = 1.0,
        map_reg: float | str = 1e-2,
        perplexity: float = 30.0,
        loss: str = "kl",
        input_kernel: str | Kernel = "rbf",
        length_scale: Any = "median",
        metric: str = "euclidean",
        affinity: Any = "auto",
        init: Any = "auto",
        solver: str = "joint",
        optimizer: str = "lbfgs",
        beta: float = 0.5,
        learning_rate: float = 1e-3,
        max_iter: int = 50,
        max_inner_iter: int = 100,
        tol: float = 1e-6,
        backend: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_prototypes = n_prototypes
        self.mu = mu
        self.map_reg = map_reg
        self.perplexity = perplexity
        self.loss = loss
        self.input_kernel = input_kernel
        self.length_scale = length_scale
        self.metric = metric
        self.affinity = affinity
        self.init = init
        self.solver = solver
        self.optimizer = optimizer
        self.beta = beta
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_inner_iter = max_inner_iter
        self.tol = tol
        self.backend = backend
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        similarities = isinstance(self.affinity, str) and self.affinity == "precomputed"
        tags.input_tags.sparse = self.metric != "precomputed"
        tags.input_tags.pairwise = self.metric == "precomputed" or similarities
        tags.input_tags.positive_only = tags.input_tags.pairwise  # distances and similarities are ≥ 0
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.prototypes_.shape[1])

    def transform(self, X: Any) -> Array:
        """Embed samples, seen or unseen: z(x) = K(x, X_train) L.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; with ``metric="precomputed"`` their distances to the training samples, of shape (n_samples,
            n_samples_fit).

        Returns
        -------
        array of shape (n_samples, n_components)
            Embedding. That of a sample does not depend on the other samples in X.
        """
        check_is_fitted(self)
        if is_dask(X):  # lazily, on the cluster
            return predict_by_blocks(self, "transform", X)
        precomputed = self.map_.inputs is None  # of the fit; `metric` may have been set since
        accept_sparse = False if precomputed else "csr"
        reject_masked(X)
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn's check sums X, which may overflow
            X = validate_data(self, X, reset=False, accept_sparse=accept_sparse, dtype=[np.float64, np.float32])
        if precomputed and (X < 0).any():
            raise InvalidInputError(f"Negative values in data passed to {type(self).__name__}: distances are ≥ 0.")
        with workers(self.n_jobs) as pool:
            return self.map_(X, pool)

    def inverse_transform(self, X: Any) -> Array:
        """Return the samples that would lie at given places of the embedding, as far as the places determine them.

        A kernel ridge regression from places to features, whose smoothness left-out samples choose. What the embedding
        does not show, such as features that say nothing about y, comes out near its mean.

        Parameters
        ----------
        X : array-like of shape (n_places, n_components)
            Places.

        Returns
        -------
        array of shape (n_places, n_features)
            Samples, in the units of the features.
        """
        check_is_fitted(self)
        self._require_features("inverse_transform", X)
        places, p = np.asarray(check_array(X, dtype=np.float64)), self.prototypes_.shape[1]
        if places.shape[1] != p:
            raise InvalidInputError(f"X has {places.shape[1]} columns; places of this embedding have {p}.")
        return samples_at(self.map_, places)

    def explain(self, X: Any) -> Array:
        """Return how each feature moves each sample: the slopes ∂z/∂x of the map, exact.

        Multiply them by the standard deviations of the features to compare features of different units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, seen or unseen.

        Returns
        -------
        array of shape (n_samples, n_components, n_features)
            Derivative of every coordinate of the place with respect to every feature.
        """
        check_is_fitted(self)
        self._require_features("explain", X)
        return slopes(self.map_, validate_data(self, X, reset=False, dtype=np.float64))

    def _require_features(self, method: str, X: Any) -> None:
        reject_masked(X)
        if self.map_.inputs is None:
            raise InvalidInputError(f"{method} needs features; this model was fitted to precomputed distances.")

    def summary(self) -> pd.DataFrame:
        """Summarize the prototypes in a table.

        Returns
        -------
        pandas.DataFrame
            One row per prototype that stands for samples, by decreasing weight: weight, number of samples, medoid,
            coordinates, targets and, after a fit to targets, the ``prototype_evidence_`` of left-out samples.
        """
        check_is_fitted(self)
        # Weights and members, then places, then targets if there are any.
        counts = np.bincount(self.labels_, minlength=len(self.prototypes_))
        table = {"weight": self.prototype_weights_, "n_samples": counts, "medoid": self.prototype_medoids_}
        names = self.get_feature_names_out()
        table |= dict(zip(names, self.prototypes_.T, strict=True))
        if hasattr(self, "prototype_targets_"):
            table |= dict(zip(self.target_names_, self.prototype_targets_.T, strict=True))
        frame = pd.DataFrame(table).rename_axis("prototype")
        if hasattr(self, "prototype_evidence_"):
            # Counts and targets carry the prefix, because the fit's own have the same names.
            evidence = self.prototype_evidence_
            frame = frame.join(evidence.rename(columns=lambda name: name if name in QUALITY else f"left-out {name}"))
        # Stable: equal weights keep the order of the prototypes.
        return frame[frame["weight"] > 0].sort_values("weight", ascending=False, kind="stable")

    def _supervise(self, y: Any, n_samples: int, weights: Array) -> Supervision | None:
        """Read the targets; None if the estimator has none."""
        return None

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, choice: MapChoice | None = None, groups: Any = None
    ) -> MapChoice | None:
        """Set up, solve and set the fitted attributes, or leave the estimator as it was if anything fails.

        Returns what the data chose. Another fit to the same samples can be given it as its `choice`.
        """
        with whole_fit(self) as fitting:
            self._validate_params()
            with workers(self.n_jobs) as pool, progress(self) as show:
                setup = set_up_fit(self, X, y, sample_weight, groups, pool, choice)
                with watch(self, X, y, sample_weight, show, setup.checkpoint) as monitor:
                    fitted = fit_reduction(setup.problem, setup.random_state, workers=pool, monitor=monitor)
                    fitting.best = fitted.reduction  # carried by errors from here on
                    self.__dict__.update(fitted_attributes(setup, fitted, self, pool))
        # The estimator is fitted: warnings that a filter turns into errors, and an interrupt, cost nothing now.
        try:
            known = None if setup.supervision is None else supervised_rows(setup.supervision.targets.values)
            n_known = 0 if known is None else int((known & (setup.weights > 0)).sum())
            warn_about_fit(self, fitted.reduction, has_signal=setup.problem.has_signal, n_known=n_known)
            if setup.checkpoint is not None and setup.checkpoint.raised is not None:
                raise setup.checkpoint.raised
        finally:
            if fitted.reduction.interrupted:
                raise KeyboardInterrupt
        return setup.choice

"""Base of Cluster-then-DR and DR-then-Cluster: parameters, and the fitted attributes of :class:`distreduce.DistR`."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from distreduce._utils.threads import single_threaded_blas
from distreduce._utils.typing import Array
from distreduce.coupling import initial_plan
from distreduce.estimators import DistR
from distreduce.estimators._validate import check_spread
from distreduce.exceptions import InvalidInputError
from distreduce.solver.medoids import distances_to_means, nearest_members


class TwoStepReduction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Clusters and an embedding, computed one after the other."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_prototypes": [Interval(Integral, 2, None, closed="left")],
        "clustering": [StrOptions({"spectral", "kmeans"})],
        "perplexity": [Interval(Real, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_prototypes: int = 10,
        clustering: str = "spectral",
        perplexity: float = 30.0,
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_prototypes = n_prototypes
        self.clustering = clustering
        self.perplexity = perplexity
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.prototypes_.shape[1])

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and embed every sample: equal to ``fit(X).transform(X)``; y is ignored."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Array:
        """Embed samples, seen or unseen, by the map of the embedding step: (n_samples, n_components)."""
        check_is_fitted(self)
        return self.map_(validate_data(self, X, reset=False, dtype=np.float64))

    def _read(self, X: Any) -> Array:
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        # Equal samples have neither clusters nor an embedding.
        check_spread(X, len(X), precomputed=False)
        if self.n_prototypes > len(X):
            raise InvalidInputError(
                f"n_prototypes={self.n_prototypes} is more than the number of samples, {len(X)}; give at most that."
            )
        return X

    def _clusters(self, points: Array, affinity: Array, random_state: np.random.RandomState) -> sparse.csr_array:
        """The hard assignment T (n, m) from which DistR would start; no cluster is empty."""
        with single_threaded_blas():
            return initial_plan(
                self.clustering,
                self.n_prototypes,
                weights=np.ones(len(points)),
                affinity=affinity,
                features=points,
                random_state=random_state,
            )

    def _embedding(self, X: Array, perplexity: float, random_state: Any, **steps: Any) -> DistR:
        """The Gromov-Wasserstein embedding with one prototype per row, and its out-of-sample map."""
        # `n_prototypes` stays None: every row is a prototype, as in plain dimensionality reduction.
        options = {"perplexity": perplexity, "n_jobs": self.n_jobs, "random_state": random_state}
        return DistR(self.n_components, **options, **steps).fit(X)

    def _set_attributes(self, X: Array, T: sparse.csr_array, prototypes: Array, model: DistR) -> None:
        self.map_ = model.map_
        # By the map, also for DR-then-Cluster, so that it equals transform(X).
        self.embedding_ = self.map_(X)
        self.n_iter_ = model.n_iter_
        self.prototypes_ = prototypes
        self.coupling_ = T
        self.labels_ = np.asarray(T.argmax(axis=1)).ravel()
        self.prototype_weights_ = cluster_sizes(T) / len(X)
        # Medoids are chosen among the samples, so by means in the space of X, not in the embedding.
        self.prototype_medoids_ = nearest_members(T, distances_to_means(X, T, cluster_means(T, X)))


def cluster_sizes(T: sparse.csr_array) -> Array:
    """Number of samples of each cluster."""
    return np.asarray(T.sum(axis=0)).ravel()


def cluster_means(T: sparse.csr_array, points: Array) -> Array:
    """Mean point (m, d) of each cluster of a hard assignment T (n, m)."""
    return np.asarray(T.T @ points) / cluster_sizes(T)[:, None]

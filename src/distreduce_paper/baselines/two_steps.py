"""Cluster-then-DR and DR-then-Cluster: clusters and an embedding, computed one after the other."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from distreduce import DistR
from distreduce.affinity import squared_distances, student_affinity, symmetric_entropic_affinity
from distreduce.coupling.initial import initial_plan
from distreduce.estimators._validate import check_spread, effective_perplexity, own_generator, power_of_two_unit
from distreduce.exceptions import InvalidInputError
from distreduce.solver.medoids import distances_to_means, nearest_members
from distreduce_paper.problems import Array

STEPS_OF_A_ROUND = 100  # as DistR takes in an outer iteration


class TwoStepReduction(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A baseline of the DistR paper [1]_, with the fitted attributes of :class:`distreduce.DistR`; targets are ignored.

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding.
    n_prototypes : int, default=10
        Number m of clusters.
    clustering : {"spectral", "kmeans"}, default="spectral"
        Clustering method.
    perplexity : float, default=30.0
        Perplexity of the affinity of the samples and, in Cluster-then-DR, of the means: there at most a third of their
        number.
    max_iter : int, default=50
        Largest number of outer iterations of the embedding; in DR-then-Cluster, of rounds of a hundred steps.
    n_jobs : int or None, default=None
        Number of threads; None uses every core.
    random_state : int, RandomState or None, default=None
        Seed of the clustering and of the start of the embedding, which depends on it only if the samples differ in
        fewer than p directions.

    Attributes
    ----------
    prototypes_ : (m, p) array
        Embedded means of the clusters, or means of the clusters in the embedding.
    prototype_weights_ : (m,) array
        Fraction of the samples in each cluster.
    prototype_medoids_ : (m,) array
        Row of the sample nearest to the mean of each cluster.
    coupling_ : (n, m) scipy sparse array
        Assignment of the samples to the clusters; rows sum to one.
    labels_ : (n,) array
        Cluster of each sample.
    embedding_ : (n, p) array
        Place of each sample, equal to ``transform(X)``.
    map_ : KernelMap
        Out-of-sample map of the embedding step.
    n_iter_ : int
        Number of iterations of the embedding.

    References
    ----------
    .. [1] Van Assel et al. (2025). Distributional Reduction: Unifying Dimensionality Reduction and Clustering with
       Gromov-Wasserstein. Transactions on Machine Learning Research. arXiv:2402.02239.
    """

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
        with threadpool_limits(1):  # the same bits on any machine
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
        self.prototype_weights_ = _cluster_sizes(T) / len(X)
        # Medoids are chosen among the samples, so by means in the space of X, not in the embedding.
        self.prototype_medoids_ = nearest_members(T, distances_to_means(X, T, _cluster_means(T, X)))


class ClusterThenReduce(TwoStepReduction):
    """Cluster-then-DR: cluster the samples, then embed the means of the clusters.

    The samples are clustered, by spectral clustering of their symmetric entropic affinity or by k-means. The means of
    the clusters, all with the same weight, are embedded by :class:`distreduce.DistR` with one prototype each.
    Parameters and attributes are those of :class:`~distreduce_paper.baselines.two_steps.TwoStepReduction`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> ClusterThenReduce(n_prototypes=12, random_state=0).fit(X).prototypes_.shape
    (12, 2)
    """

    def fit(self, X: Any, y: Any = None) -> ClusterThenReduce:
        """Cluster the samples and embed the means; y is ignored and present for API consistency."""
        X = self._read(X)
        random_state = own_generator(self.random_state)
        T = self._clusters(X, self._affinity(X), random_state)
        means = _cluster_means(T, X)
        # A third of the means still distinguishes near from far (decision 8); 4/3 is the limit for two means.
        perplexity = min(self.perplexity, max(len(means) / 3, 4 / 3))
        model = self._embedding(means, perplexity, random_state, max_iter=self.max_iter)
        self._set_attributes(X, T, model.prototypes_, model)
        return self

    def _affinity(self, X: Array) -> Array:
        """C of the samples, which only spectral clustering uses."""
        if self.clustering == "kmeans":
            return np.empty((0, 0))
        # The affinity does not depend on the unit, but squares of huge numbers overflow.
        distances = squared_distances(X / power_of_two_unit(X))
        return symmetric_entropic_affinity(distances, effective_perplexity(self.perplexity, np.ones(len(X)))).matrix


class ReduceThenCluster(TwoStepReduction):
    """DR-then-Cluster: embed all samples, then cluster the embedding.

    All samples are embedded by :class:`distreduce.DistR` with one prototype each, and the embedding is clustered, by
    spectral clustering of its Student-t affinity or by k-means. The coupling stays the identity, where DistR starts: a
    search for a better one costs n³ per iteration and moved none of the 1047 samples of SNARE-seq and two of the 1440
    of COIL-20. Parameters and attributes are those of
    :class:`~distreduce_paper.baselines.two_steps.TwoStepReduction`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> ReduceThenCluster(n_prototypes=12, random_state=0).fit(X).prototypes_.shape
    (12, 2)
    """

    def fit(self, X: Any, y: Any = None) -> ReduceThenCluster:
        """Embed the samples and cluster the embedding; y is ignored and present for API consistency."""
        X = self._read(X)
        steps = STEPS_OF_A_ROUND * self.max_iter
        # One long inner loop: with the identity as coupling there is nothing to alternate with.
        model = self._embedding(X, self.perplexity, self.random_state, max_iter=0, max_inner_iter=steps)
        Z = model.prototypes_
        T = self._clusters(Z, student_affinity(Z), own_generator(self.random_state))
        self._set_attributes(X, T, _cluster_means(T, Z), model)
        return self


def _cluster_sizes(T: sparse.csr_array) -> Array:
    """Number of samples of each cluster."""
    return np.asarray(T.sum(axis=0)).ravel()


def _cluster_means(T: sparse.csr_array, points: Array) -> Array:
    """Mean point (m, d) of each cluster of a hard assignment T (n, m)."""
    return np.asarray(T.T @ points) / _cluster_sizes(T)[:, None]

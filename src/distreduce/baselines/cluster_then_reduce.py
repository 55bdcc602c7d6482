"""Cluster-then-DR: cluster the samples, then embed the means of the clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from distreduce._utils.typing import Array
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.baselines._two_steps import TwoStepReduction, cluster_means
from distreduce.estimators._validate import effective_perplexity, own_generator, power_of_two_unit


class ClusterThenReduce(TwoStepReduction):
    """Cluster-then-DR, a baseline of the DistR paper [1]_; targets are ignored.

    The samples are clustered, by spectral clustering of their symmetric entropic affinity or by k-means. The means of
    the clusters, all with the same weight, are embedded by :class:`distreduce.DistR` with one prototype each.

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding.
    n_prototypes : int, default=10
        Number m of clusters.
    clustering : {"spectral", "kmeans"}, default="spectral"
        Clustering method.
    perplexity : float, default=30.0
        Perplexity of both affinities; for the means at most a third of their number.
    max_iter : int, default=50
        Largest number of outer iterations of the embedding.
    n_jobs : int or None, default=None
        Number of threads; None uses every core.
    random_state : int, RandomState or None, default=None
        Seed of the clustering and of the start of the embedding.

    Attributes
    ----------
    prototypes_ : (m, p) array
        Embedded means of the clusters.
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
        Out-of-sample map fitted to the means.
    n_iter_ : int
        Number of iterations of the embedding.

    References
    ----------
    .. [1] Van Assel et al. (2025). Distributional Reduction: Unifying Dimensionality Reduction and Clustering with
       Gromov-Wasserstein. Transactions on Machine Learning Research. arXiv:2402.02239.

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
        means = cluster_means(T, X)
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

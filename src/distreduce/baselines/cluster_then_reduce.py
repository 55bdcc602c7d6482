"""Cluster-then-DR: cluster the samples, then embed the clusters' means."""

from __future__ import annotations

from typing import Any

import numpy as np

from distreduce._utils.typing import Array
from distreduce.affinity import squared_distances, symmetric_entropic_affinity
from distreduce.baselines._two_steps import TwoStepReduction, cluster_means
from distreduce.estimators._validate import effective_perplexity, own_generator, power_of_two_unit


class ClusterThenReduce(TwoStepReduction):
    """Cluster-then-DR, as DistR's paper (Van Assel et al., 2025) compares with: targets are ignored.

    The samples are clustered (by the spectrum of their symmetric entropic affinity, or by k-means), and the clusters'
    means, each counting alike, are embedded as :class:`distreduce.DistR` embeds samples: by their own symmetric
    entropic affinity, one prototype each.

    Parameters
    ----------
    n_components : int, default=2
        Dimension p of the embedding.
    n_prototypes : int, default=10
        Number m of clusters.
    clustering : {"spectral", "kmeans"}, default="spectral"
        The clustering of the samples.
    perplexity : float, default=30.0
        Of both affinities; for the means at most a third of their number.
    max_iter : int, default=50
        Largest number of outer iterations of the embedding.
    n_jobs : int or None, default=None
        Threads; None uses every core.
    random_state : int, RandomState or None
        Seed of the clustering and of the embedding's start.

    Attributes
    ----------
    prototypes_, prototype_weights_, prototype_medoids_, coupling_, labels_, embedding_, map_, n_iter_
        As of :class:`distreduce.DistR`. Prototypes are the embedded means, their weights the clusters' shares of the
        samples; samples are placed by the means' out-of-sample map.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> ClusterThenReduce(n_prototypes=12, random_state=0).fit(X).prototypes_.shape
    (12, 2)
    """

    def fit(self, X: Any, y: Any = None) -> ClusterThenReduce:
        """Cluster the samples and embed the means; y is ignored and there for scikit-learn's pipelines."""
        X = self._read(X)
        random_state = own_generator(self.random_state)
        T = self._clusters(X, self._affinity(X), random_state)
        means = cluster_means(T, X)
        perplexity = min(self.perplexity, max(len(means) / 3, 4 / 3))
        model = self._embedding(means, perplexity, random_state, max_iter=self.max_iter)
        self._set_attributes(X, T, model.prototypes_, model)
        return self

    def _affinity(self, X: Array) -> Array:
        """C of the samples, which only the spectral clustering looks at."""
        if self.clustering == "kmeans":
            return np.empty((0, 0))
        distances = squared_distances(X / power_of_two_unit(X))
        return symmetric_entropic_affinity(distances, effective_perplexity(self.perplexity, np.ones(len(X)))).matrix

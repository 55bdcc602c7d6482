"""Your own reduction: prototypes drawn at random from the samples, placed by their principal components."""

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin

from distreduce_paper.methods import add_reduction


class SampledPrototypes(BaseEstimator):
    def __init__(self, n_prototypes=20, random_state=None):
        self.n_prototypes = n_prototypes
        self.random_state = random_state

    def fit(self, X, y=None):
        n, m = len(X), self.n_prototypes
        drawn = np.random.default_rng(self.random_state).choice(n, m, replace=False)
        places = PCA(2, random_state=self.random_state).fit_transform(X)
        self.labels_ = pairwise_distances_argmin(X, X[drawn])
        self.prototypes_ = places[drawn]
        self.prototype_weights_ = np.bincount(self.labels_, minlength=m) / n
        self.coupling_ = csr_array((np.ones(n), (np.arange(n), self.labels_)), shape=(n, m))
        return self


add_reduction("sampled", lambda m, perplexity, seed: SampledPrototypes(m, seed))

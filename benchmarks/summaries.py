"""Ways to choose m weighted samples that stand for a training set; `prototypes.py` compares them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin

from distreduce import SDR

Array = NDArray[np.float64]
Summary = tuple[NDArray[np.intp], Array]  # rows of the training set, each once, and their weights
N_BINS = 5  # numbers have no classes: k-means runs within fifths of y


def sdr(X: Array, y: Array, m: int, seed: int) -> Summary:
    """Return the medoids of default SDR."""
    model = SDR(n_prototypes=m, random_state=seed).fit(X, y)
    return _merge(model.prototype_medoids_, model.prototype_weights_)


def k_medoids(X: Array, y: Array, m: int, seed: int) -> Summary:
    """Return k-medoids of X by FasterPAM."""
    import kmedoids

    found = kmedoids.fasterpam(pairwise_distances(X), m, random_state=seed, n_cpu=1)
    return _merge(found.medoids[found.labels], np.ones(len(X)))


def k_means_per_class(X: Array, y: Array, m: int, seed: int) -> Summary:
    """Return the samples nearest to the centres of k-means within each class, or within each fifth of y."""
    numbers = y.dtype.kind == "f"
    classes = np.digitize(y, np.quantile(y, np.arange(1, N_BINS) / N_BINS)) if numbers else y
    members = [np.flatnonzero(classes == one) for one in np.unique(classes)]
    rows, sizes = [], []
    for own, k in zip(members, _share_out(np.array([len(own) for own in members]), m), strict=True):
        found = KMeans(k, n_init=3, random_state=seed).fit(X[own])
        rows.append(own[pairwise_distances_argmin(found.cluster_centers_, X[own])])
        sizes.append(np.bincount(found.labels_, minlength=k))
    return _merge(np.concatenate(rows), np.concatenate(sizes))


def _share_out(sizes: NDArray[np.intp], m: int) -> NDArray[np.intp]:
    """Share m prototypes among classes of these sizes: one each, then always to the class with most samples per one."""
    shares = np.ones(len(sizes), dtype=int)
    for _ in range(m - len(sizes)):
        shares[np.argmax(np.where(shares < sizes, sizes / shares, 0.0))] += 1
    return shares


def protodash(X: Array, y: Array, m: int, seed: int) -> Summary:
    """Return ProtoDash's samples: greedy by maximum mean discrepancy, with non-negative weights.

    The kernel is that of MMD-critic's nearest-prototype classifier: it counts pairs of a class only, here with its
    analogue for numbers.
    """
    squares = pairwise_distances(X, metric="sqeuclidean")
    of_targets = np.exp(-0.5 * (y[:, None] - y) ** 2) if y.dtype.kind == "f" else y[:, None] == y
    K = np.exp(-squares / np.median(squares)) * of_targets
    means = K.mean(axis=1)
    rows, weights = np.array([], dtype=int), np.array([])
    for _ in range(m):
        # The sample whose weight would lower the discrepancy fastest.
        gains = means - K[:, rows] @ weights
        gains[rows] = -np.inf
        rows = np.append(rows, np.argmax(gains))
        # All weights anew: minimize w'Kw / 2 − means'w over w ≥ 0, as least squares by the Cholesky factor.
        factor = cholesky(K[np.ix_(rows, rows)] + 1e-9 * np.eye(len(rows)), lower=True)
        weights = nnls(factor.T, solve_triangular(factor, means[rows], lower=True))[0]
    return _merge(rows, weights)


def slipmap(X: Array, y: Array, m: int, seed: int) -> Summary:
    """Return, for each prototype of SLIPMAP that is nearest to a sample in its plane, the sample next to it."""
    from slisemap.local_models import LinearRegression, LogisticRegression
    from slisemap.slipmap import Slipmap

    numbers = y.dtype.kind == "f"
    targets = y if numbers else np.asarray(y[:, None] == np.unique(y), dtype=float)
    local = LinearRegression if numbers else LogisticRegression
    model = Slipmap(X, targets, lasso=0.01, ridge=0.001, local_model=local, prototypes=m)
    model.optimize(verbose=False)
    Z, places = model.get_Z(), model.get_Zp()
    nearest = pairwise_distances_argmin(Z, places)
    return _merge(pairwise_distances_argmin(places, Z)[nearest], np.ones(len(X)))


def random(X: Array, y: Array, m: int, seed: int) -> Summary:
    """Return samples drawn at random."""
    return np.random.default_rng(seed).choice(len(X), m, replace=False), np.ones(m)


def everything(X: Array, y: Array, m: int, seed: int) -> Summary:
    """Return all samples."""
    return np.arange(len(X)), np.ones(len(X))


def _merge(rows: NDArray[np.intp], weights: Array) -> Summary:
    """Add up the weights of repeated rows, and leave out rows without weight."""
    rows, place = np.unique(rows, return_inverse=True)
    weights = np.bincount(place, weights)
    return rows[weights > 0], weights[weights > 0]


SUMMARIES: dict[str, Callable[[Array, Array, int, int], Summary]] = {
    "SDR": sdr,
    "k-medoids": k_medoids,
    "k-means per class": k_means_per_class,
    "ProtoDash": protodash,
    "SLIPMAP": slipmap,
    "random": random,
    "all samples": everything,
}

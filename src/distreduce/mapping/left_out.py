"""Left-out embeddings: where the out-of-sample map would put a training sample that it had not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import orthogonal_procrustes, solve
from sklearn.neighbors import NearestNeighbors

from distreduce._utils.linalg import inverse_from_factor
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import NumericalError
from distreduce.mapping.folds import Folds
from distreduce.mapping.kernel_map import MapRegression, factorise_kernel

NEIGHBOURS = 10  # whose targets say what a place is worth
# Samples that a point moves with: enough that the left-out target, which the fit has seen, hardly shows in their places
# (decision 21), but not so many that the memory of refits grows with the square of n.
SHARE_AROUND, FEWEST_AROUND, MOST_AROUND = 0.1, 10, 300


def left_out_embedding(K: Array, F: Array, regularisation: float, groups: NDArray[np.intp]) -> Array:
    r"""Embedding (n, p) of each sample by the map fitted to the samples outside its group, in closed form.

    .. math::
        z_{-G}(x_G) = F_G - (P_{GG})^{-1} [P F]_G, \qquad P = (K + \lambda I)^{-1}

    A group holds samples with equal inputs, which reveal each other's place. A group of one is the usual leave-one-out,
    :math:`z_i - [PF]_i / P_{ii}`. F (n, p) is where the reduction puts the samples, and `regularisation` is λ.
    """
    factor, _ = factorise_kernel(K + regularisation * np.eye(len(K)))
    P = inverse_from_factor(factor)
    coefficients = P @ F
    # All samples as groups of one; larger groups are overwritten below.
    left_out = F - coefficients / P.diagonal()[:, None]
    sizes = np.bincount(groups)
    for group in np.flatnonzero(sizes > 1):  # one block of P per group: copies must leave together
        rows = np.flatnonzero(groups == group)
        left_out[rows] = F[rows] - solve(P[np.ix_(rows, rows)], coefficients[rows], assume_a="pos")
    return np.asarray(left_out)


def left_out_error(K: Array, F: Array, regularisation: float, groups: Index) -> float:
    """Mean squared error of :func:`left_out_embedding`."""
    return float(np.mean((left_out_embedding(K, F, regularisation, groups) - F) ** 2))


@dataclass(frozen=True)
class LeftOut:
    """Places of samples as if they were new."""

    places: Array  # (n, p), where a map fitted without a sample puts it
    # (k, n), for each part of the folds the shares of its nearest others with known targets, where that map puts them;
    # None if only the places are known.
    neighbours: sparse.csr_array | None = None


def cross_fitted(
    similarity: Callable[[int, Index, Index], tuple[Array, Array]],
    refit: Callable[[int, Index, Array, Array], tuple[Array, MapRegression]],
    folds: Folds,
    known: NDArray[np.bool_],
    fitted: Array,
    lay: Callable[[Array, Array, Array, Array], Array],
    k: int = NEIGHBOURS,
) -> LeftOut:
    r"""Embed every fold by the map fitted to the other folds.

    .. math:: z_{-g}(x) = K_g(x, X_{-g})\,(K_g + \lambda W^{-1})^{-1} F_{-g}

    K_g may use a metric that was learned without the fold. What is left in the dark is that the places F of the others
    were found, or start, where the fit with the fold put them. Each map has a picture of its own: the folds are laid
    over the picture of the fit by the samples that were not left out.

    `similarity` takes a fold, the numbers of the other samples and those of its own; it returns K_g of the others, and
    of its own and the others. `refit` takes a fold, the numbers and weights of the other samples and their K_g, which
    it may overwrite; it returns F_{-g} and the regression of the map. A sample with parts in several folds lies
    at the mean of their places. `known` tells which samples have known targets and can be among the k neighbours, and
    `fitted` where the map of the fit puts the samples; `lay` is :func:`align` or :func:`lay_over`.
    """
    places, complete = np.empty((len(folds.sample), fitted.shape[1])), True
    shares = sparse.csr_array((len(places), len(fitted)))
    for fold in folds.numbers:
        out, (rest, weights) = folds.out(fold), folds.rest(fold)
        K, K_new = similarity(fold, rest, folds.sample[out])
        F, regression = refit(fold, rest, weights, K)
        coefficients = regression.coefficients(F)
        new = K_new @ coefficients
        if not np.isfinite(new).all():
            raise NumericalError("Its coefficients without some of the samples are not finite")
        # The others where the same map puts them, by its normal equations.
        there, able = regression.values(F, coefficients), known[rest]
        places[out] = lay(new, there, fitted[rest], weights)
        if able.any():  # else all known targets are in one fold
            near = share_neighbours(new, there[able], weights[able], folds.sites[rest[able]], k).tocoo()
            shares += sparse.coo_array((near.data, (out[near.row], rest[able][near.col])), shape=shares.shape)
        else:
            complete = False
    return LeftOut(folds.average(places), shares if complete else None)


def share_neighbours(
    points: Any, among: Any, weights: Array, sites: Index, k: int, *, precomputed: bool = False
) -> sparse.csr_array:
    """Return what part each sample has in the k nearest neighbours of each point: rows (n, m) that sum to one.

    A sample of weight two counts as two. Samples of one site are equally near; if there are too many of them, each has
    a part, which is the mean over ties broken at random. With `precomputed`, points and among hold distances.
    """
    _, first, site = np.unique(sites, return_index=True, return_inverse=True)
    search = NearestNeighbors(n_neighbors=min(k, len(first)), metric="precomputed" if precomputed else "minkowski")
    search.fit(among[np.ix_(first, first)] if precomputed else among[first])
    near = search.kneighbors(points[:, first] if precomputed else points, return_distance=False)
    mass = np.bincount(site, weights)[near]
    taken = np.clip(k - (mass.cumsum(axis=1) - mass), 0.0, mass)
    taken /= taken.sum(axis=1, keepdims=True)
    borders = np.arange(0, near.size + 1, near.shape[1])
    picked = sparse.csr_array((taken.ravel(), near.ravel(), borders), shape=(len(near), len(first)))
    within = sparse.csr_array((weights / np.bincount(site, weights)[site], (site, np.arange(len(site)))))
    return sparse.csr_array(picked @ within)


def lay_over(points: Array, source: Array, target: Array, weights: Array) -> Array:
    r"""Move points from the picture `source` of some samples to where they belong in their picture `target`.

    After :func:`align`, which takes the samples from a_i to a'_i and a point to z', the point moves with the samples
    around it:

    .. math:: z' + \frac{\sum_i w_i (b_i - a'_i)}{\sum_i w_i}, \qquad w_i = h_i\, e^{-2 |z' - a'_i|^2 / r^2}

    over the tenth of the samples nearest to z' (10 to 300), of which the farthest is at distance r. Two pictures of ten
    classes may have each class somewhere else, which no rotation undoes.
    """
    moved = align(np.concatenate([points, source]), source, target, weights)
    new, there = moved[: len(points)], moved[len(points) :]
    k = min(len(there), round(np.clip(SHARE_AROUND * len(there), FEWEST_AROUND, MOST_AROUND)))
    distances, near = NearestNeighbors(n_neighbors=k).fit(there).kneighbors(new)
    reach = np.maximum(distances[:, -1:], np.finfo(float).tiny)
    w = weights[near] * np.exp(-2.0 * (distances / reach) ** 2)
    return np.asarray(new + np.einsum("ik,ikp->ip", w / w.sum(axis=1, keepdims=True), (target - there)[near]))


def align(points: Array, source: Array, target: Array, weights: Array) -> Array:
    r"""Move points by the rotation or reflection R, scale s and shift that take `source` nearest to `target`.

    .. math:: \min_{R^\top R = I,\, s,\, t} \sum_i h_i\, |s R^\top a_i + t - b_i|^2
    """
    a, b = (np.average(places, axis=0, weights=weights) for places in (source, target))
    root = np.sqrt(weights)[:, None]
    R, product = orthogonal_procrustes(root * (source - a), root * (target - b))
    size = float((weights @ (source - a) ** 2).sum())
    return (points - a) @ R * (product / size if size > 0 else 1.0) + b

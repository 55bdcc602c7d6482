"""Left-out embeddings: where the out-of-sample map would put a training sample that it had not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes, solve

from distreduce._utils.numerics import inverse_from_factor, nearest
from distreduce._utils.typing import Array, Index
from distreduce.exceptions import NumericalError
from distreduce.mapping.kernel_map import MapRegression, factorise_kernel


def left_out_embedding(K: Array, F: Array, regularisation: float, groups: NDArray[np.intp]) -> Array:
    r"""Embedding (n, p) of each sample by the map fitted to the samples outside its group, in closed form.

    .. math::
        z_{-G}(x_G) = F_G - (P_{GG})^{-1} [P F]_G, \qquad P = (K + \lambda I)^{-1}

    A group holds samples with equal inputs, which reveal each other's place. A group of one is the usual leave-one-out,
    :math:`z_i - [PF]_i / P_{ii}`.

    Parameters
    ----------
    K : (n, n) array
        Input kernel of the training samples.
    F : (n, p) array
        Embedding of the samples by the reduction.
    regularisation : float
        λ/μ.
    groups : (n,) array
        Group number of each sample.
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


@dataclass(frozen=True)
class LeftOut:
    """Places of samples as if they were new."""

    places: Array  # (n, p), where a map fitted without a sample puts it
    # (n, k), the nearest others with known targets there, where that map puts them; None if only the places are known.
    neighbours: Index | None = None


def cross_fitted(
    similarity: Callable[[int], Array],
    refit: Callable[[int, Index, Array], tuple[Array, MapRegression]],
    folds: Index,
    known: NDArray[np.bool_],
    fitted: Array,
    k: int = 10,
) -> LeftOut:
    r"""Embed every fold by the map fitted to the other folds.

    .. math:: z_{-g}(x) = K_g(x, X_{-g})\,(K_g + \lambda W^{-1})^{-1} F_{-g}

    K_g may use a metric that was learned without the fold. What is left in the dark is that the places F of the others
    were found, or start, where the fit with the fold put them. Each map may turn, shift and scale its picture: the
    folds are laid over the picture of the fit by the samples that were not left out.

    Parameters
    ----------
    similarity : callable
        Given a fold, returns K_g (n, n).
    refit : callable
        Given a fold, the numbers of the other samples and their K_g, which it may overwrite, returns their embedding
        F_{-g} by the reduction and the regression of the map.
    folds : (n,) array
        Fold of each sample.
    known : (n,) array
        Which samples have known targets and can be neighbours.
    fitted : (n, p) array
        Where the map of the fit puts the samples.
    k : int
        Number of neighbours; fewer if there are not as many.
    """
    k = min(k, *(int((known & (folds != fold)).sum()) for fold in np.unique(folds)))
    places, neighbours = np.empty_like(fitted), np.zeros((len(folds), k), dtype=np.intp)
    for fold in np.unique(folds):
        out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        K = similarity(int(fold))
        F, regression = refit(int(fold), rest, K[np.ix_(rest, rest)])
        coefficients = regression.coefficients(F)
        new = K[np.ix_(out, rest)] @ coefficients
        if not np.isfinite(new).all():
            raise NumericalError("Its coefficients without some of the samples are not finite")
        # The others where the same map puts them, by its normal equations.
        there, able = regression.fitted(F, coefficients), known[rest]
        places[out] = align(new, there, fitted[rest], regression.weights)
        if k:  # else all known targets are in one fold
            neighbours[out] = rest[able][nearest(new, there[able], k)[1]]
    return LeftOut(places, neighbours if k else None)


def align(points: Array, source: Array, target: Array, weights: Array) -> Array:
    r"""Move points by the rotation or reflection R, scale s and shift that take `source` nearest to `target`.

    .. math:: \min_{R^\top R = I,\, s,\, t} \sum_i h_i\, |s R^\top a_i + t - b_i|^2
    """
    a, b = (np.average(places, axis=0, weights=weights) for places in (source, target))
    root = np.sqrt(weights)[:, None]
    R, product = orthogonal_procrustes(root * (source - a), root * (target - b))
    size = float((weights @ (source - a) ** 2).sum())
    return (points - a) @ R * (product / size if size > 0 else 1.0) + b

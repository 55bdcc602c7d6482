"""The axes of a picture: one that is too narrow to see shows what new samples keep of the features instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from distreduce._utils.numerics import to_dense
from distreduce._utils.typing import Array, Index
from distreduce.losses import supervised_rows
from distreduce.mapping.left_out import left_out_embedding

# Axes narrower than a fifth of the widest are drawn anew, and then are a third as wide. Ten neighbours in the plane say
# as much about y as before, and more neighbours in X stay neighbours (decision 21).
NARROW, WIDTH = 1.0 / 5.0, 1.0 / 3.0
MOST_AXES = 3  # of a picture; an embedding with more is not looked at
DIRECTION_SAMPLES = 400  # that decide on the directions
NEIGHBOURS, LOSS = 10, 0.01
SMALLEST = 1e-9  # singular value, relative to the size of the features, from which on a direction counts


@dataclass(frozen=True)
class Axes:
    """Places turned so that the wide axes come first, with the others drawn anew: f ↦ f P + g_i."""

    kept: Array  # P (p, p), onto the wide axes; zero in the last columns
    drawn: Array  # g (n, p), zero in the first columns

    def __call__(self, F: Array, rows: Index | slice = slice(None)) -> Array:
        """Return the places of the samples `rows`, which the solver has put at F."""
        return np.asarray(F @ self.kept + self.drawn[rows])


@dataclass(frozen=True)
class Directions:
    """Directions of the features in place of narrow axes."""

    wide: Array  # (p, p - r), orthonormal: the axes that stay, the widest first
    features: Array  # (d, r): what is drawn along the others

    def draw(self, products: Array) -> Axes:
        """Return axes along which samples lie at their products (n, r) with the directions, in some units."""
        p, w = self.wide.shape
        return Axes(np.pad(self.wide, ((0, 0), (0, p - w))), np.pad(products, ((0, 0), (w, 0))))

    def factors(self, values: Array, weights: Array) -> Array:
        """Return by what the axes (p,) of a picture (k, p) must be multiplied to be as wide as they should be."""
        w, covariance = self.wide.shape[1], _covariance(values, weights)
        spread = np.sqrt(covariance.diagonal()[w:])
        widest = np.sqrt(np.linalg.eigvalsh(covariance[:w, :w])[-1])
        return np.r_[np.ones(w), WIDTH * widest / np.where(spread > 0, spread, 1.0)]


def find_directions(
    places: Array, X: Any, Y: Array, K: Array, weights: Array, ridge: float, scales: Array | None = None
) -> Directions | None:
    r"""Return directions of the features X (k, d) for the axes that are too narrow; None if there are none.

    Features that were divided by `scales` count as they were before. With U the coordinates of the places (k, p) on the
    wide axes and X̂ the features as kernel ridge regression in the map's kernel predicts them for left-out samples,

    .. math:: \max_W \mathrm{Tr}\big(W^\top \tfrac12 (X^\top H \hat X + \hat X^\top H X) W\big), \qquad
        W^\top W = I, \quad W^\top X^\top H U = 0

    with H the diagonal of the weights, and columns centred. These are principal components of X, uncorrelated with the
    wide axes, of which only that part counts which the map keeps for new samples: a feature that has no say in its
    metric has no covariance with what is predicted of it. Along the wide axes the targets Y (k, c) rise.
    """
    variances, axes = np.linalg.eigh(_covariance(places, weights))
    r = int((variances < NARROW**2 * variances[-1]).sum())
    if r == 0:
        return None
    wide = _rise(axes[:, r:][:, ::-1], places, Y, weights)
    root = np.sqrt(weights / weights.sum())[:, None]
    units = np.ones(X.shape[1]) if scales is None else scales
    rows, U = root * _centre(X, weights) * units, root * _centre(places @ wide, weights)
    # The features less what is correlated with the wide axes, in coordinates of their own.
    correlated = np.linalg.qr(rows.T @ U)[0]
    _, sizes, basis = np.linalg.svd(rows - (rows @ correlated) @ correlated.T, full_matrices=False)
    basis = basis[sizes > SMALLEST * np.linalg.norm(rows)]
    if len(basis) < r:
        return None
    inside = rows @ basis.T
    covariance = inside.T @ (root * _leave_out(inside / root, K, weights, ridge))
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    if not values[-r] > 0:  # the map keeps nothing else of X
        return None
    found = basis.T @ vectors[:, : -r - 1 : -1]
    # Eigenvectors have no sign of their own: the largest entry of each becomes positive.
    return Directions(wide, units[:, None] * (found * np.sign(found[np.abs(found).argmax(axis=0), np.arange(r)])))


def neighbours_say_less(before: Array, after: Array, Y: Array, K: Array, weights: Array, ridge: float) -> bool:
    r"""Return whether ten neighbours clearly say less about the targets Y (k, c) in one picture than in another.

    The error :math:`e_i = |y_i - \bar y_{N(i)}|^2` of the neighbours N(i) among the places (k, p) `after` is compared
    with that among those `before`, both predicted by kernel ridge regression for left-out samples. It is clearly larger
    if the mean difference exceeds two standard errors and 1 % of the variance.
    """
    known = supervised_rows(Y)
    if known.sum() <= NEIGHBOURS:
        return False
    Y, h = Y[known], weights[known] / weights[known].sum()
    errors = []
    for places in (before, after):
        search = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(_leave_out(places, K, weights, ridge)[known])
        errors.append(((Y - Y[search.kneighbors(return_distance=False)].mean(axis=1)) ** 2).sum(axis=1))
    more = errors[1] - errors[0]
    mean = h @ more
    variance = h @ ((Y - h @ Y) ** 2).sum(axis=1)
    return bool(mean > max(2.0 * np.sqrt(h**2 @ (more - mean) ** 2), LOSS * variance))


def _leave_out(X: Array, K: Array, weights: Array, ridge: float) -> Array:
    """Predict X (k, d) by kernel ridge regression on the other samples."""
    root = np.sqrt(weights)[:, None]
    return left_out_embedding(root * K * root.T, root * X, ridge, np.arange(len(X))) / root


def _centre(X: Any, weights: Array) -> Array:
    X = to_dense(X, np.float64)
    return np.asarray(X - weights @ X / weights.sum())


def _covariance(X: Array, weights: Array) -> Array:
    centred = _centre(X, weights)
    return np.asarray((weights / weights.sum() * centred.T) @ centred)


def _rise(axes: Array, places: Array, Y: Array, weights: Array) -> Array:
    """Turn axes round along which known targets fall: a number, or the number of the class."""
    known = supervised_rows(Y)
    heights = Y[known] @ np.arange(1.0, Y.shape[1] + 1)
    slopes = (weights[known] * heights) @ _centre(places[known] @ axes, weights[known])
    return axes * np.where(slopes < 0, -1.0, 1.0)

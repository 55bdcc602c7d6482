"""The map read backwards: how features move a place, and which sample would lie at a place."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve
from scipy.spatial.distance import pdist

from distreduce._utils.numerics import evenly_spaced, to_dense
from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, DistanceKernel, Linear
from distreduce.mapping.kernel_map import KernelMap, factorise_kernel
from distreduce.mapping.left_out import left_out_error

REFERENCE = 1000  # training samples behind the inverse: the kernel ridge regression takes n³ operations
# Length scales in units of the median distance of places, and ridges, that left-out samples choose from.
FACTORS, RIDGES = (0.05, 0.1, 0.2, 0.5), (1e-3, 1e-2, 0.1, 1.0)


def slopes(map_: KernelMap, X: Array) -> Array:
    r"""Derivatives (t, p, d) of the place of each row with respect to each feature, exact.

    .. math:: \frac{\partial z(x)}{\partial x} = \sum_i L_i\, 2 k'(|x - x_i|^2)\,(x - x_i)

    for a kernel that is a function of the squared distance; features with length scales of their own are divided by
    them first, and the slopes once more. Predictions among the features follow the chain rule.
    """
    if map_.predictions is not None:
        wide, d = KernelMap(map_.kernel, map_.wide_inputs, map_.coefficients), X.shape[1]
        found = slopes(wide, map_.widen(X))
        p = map_.predictions(X)
        inner = p[:, :, None] * slopes(map_.predictions.predictor, X)  # ∂p/∂ŷ = diag(p) − p pᵀ
        inner -= p[:, :, None] * inner.sum(axis=1, keepdims=True)
        return found[..., :d] / map_.unit + found[..., d:] @ inner
    if isinstance(map_.kernel, Linear):
        slope = map_.coefficients.T @ map_.inputs
        return np.broadcast_to(np.asarray(slope) / map_.unit, (len(X), *slope.shape)).copy()
    kernel, scales = map_.kernel, np.asarray(map_.unit, dtype=np.float64)
    inputs = to_dense(map_.inputs, np.float64)
    rows = X / scales
    if isinstance(kernel, RBF) and isinstance(kernel.length_scale, tuple):  # of each feature: in their units
        lengths = np.asarray(kernel.length_scale)
        rows, inputs, scales, kernel = rows / lengths, inputs / lengths, scales * lengths, RBF(1.0)
    if not isinstance(kernel, DistanceKernel):
        raise InvalidInputError("explain needs an input_kernel that is a function of the distance, or the linear one.")
    found = np.empty((len(X), map_.coefficients.shape[1], X.shape[1]))
    for t, row in enumerate(rows):  # one row at a time: n numbers instead of n t
        away = row - inputs
        pull = 2.0 * kernel.derivative(np.einsum("ij,ij->i", away, away))
        found[t] = (map_.coefficients * pull[:, None]).T @ away
    return found / scales


def samples_at(map_: KernelMap, Z: Array) -> Array:
    r"""Samples (t, d) that would lie at places Z (t, p): kernel ridge regression from places back to samples.

    .. math:: x(z) = \bar x + K_Z(z, Z)\,(K_Z + \rho I)^{-1}(X - \bar x)

    where X are the training inputs, or landmarks, of a fitted map. Left-out samples choose smoothness and ridge.
    """
    rows = evenly_spaced(map_.inputs.shape[0], REFERENCE)
    X = to_dense(map_.inputs[rows], np.float64) * map_.unit
    places, mean = map_(X), X.mean(axis=0)
    target, spread = X - mean, float(np.median(pdist(places))) or 1.0
    groups = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    # The squared error of features in their own spread: else the one with the largest unit decides alone.
    unit = np.where(target.std(axis=0) > 0, target.std(axis=0), 1.0)
    candidates = [(RBF(f * spread), ridge) for f in FACTORS for ridge in RIDGES]
    kernel, ridge = min(candidates, key=lambda one: left_out_error(one[0](places), target / unit, one[1], groups))
    K = kernel(places)
    K[np.diag_indices(len(K))] += ridge
    return np.asarray(mean + kernel(Z, places) @ cho_solve(factorise_kernel(K), target))

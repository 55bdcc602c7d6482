"""From (X, y) to the inputs of SDR's Gaussian processes: the metric, the reduction, the left-out embedding."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distreduce._utils.typing import Array
from distreduce.estimators import SDR
from distreduce.exceptions import DataWarning, SolverConvergenceWarning
from distreduce.gp._hyperparameters import Hyperparameters
from distreduce.mapping import left_out_embedding

LEAST_MAP_REG = 1e-3  # below, the map interpolates the embedding of every sample and says nothing of its neighbours


def relevance_metric(found: Sequence[Hyperparameters]) -> tuple[Array, float]:
    r"""Length scales and ridge of the map from the plain GPs of all targets: what matters to y, and how noisy it is.

    .. math:: l_f^{-2} = \mathrm{mean}_t\, l_{tf}^{-2}, \qquad \lambda = \mathrm{mean}_t\, \sigma_t^2 / s_t
    """
    precision = np.mean([gp.length_scales**-2.0 for gp in found], axis=0)
    ratio = np.mean([gp.noise / gp.signal for gp in found])
    return 1.0 / np.sqrt(precision), float(np.clip(ratio, LEAST_MAP_REG, 1.0))


def most_neighbours(n: int) -> float:
    """Largest perplexity that still tells near from far among n samples (decision 8)."""
    return max(n / 3, min(1.5, 2 * n / 3))


def fit_reduction(reduction: SDR, X: Array, y: Any) -> SDR:
    """Fit quietly: that the embedding step stopped at its limit is no news to somebody who asked for a GP."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        return reduction.fit(X, y)


def left_out(reduction: SDR, X: Array) -> Array:
    """Embedding of the training samples by maps that have not seen them (nor samples of equal features)."""
    placed = reduction.coupling_ @ reduction.prototypes_
    _, groups = np.unique(X, axis=0, return_inverse=True)
    K = reduction.map_.kernel(X / reduction.map_.unit)
    return left_out_embedding(K, placed, reduction.map_reg / reduction.mu, groups.ravel())


def drawn(n: int, size: int, random_state: np.random.RandomState) -> NDArray[np.intp]:
    """All rows, or `size` of them drawn at random, in an order that is random as well."""
    return np.arange(n) if size >= n else random_state.permutation(n)[:size]

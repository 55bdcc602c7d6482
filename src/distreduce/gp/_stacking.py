"""Several predictive distributions of one target mixed into one, with weights from leave-one-out densities."""

from __future__ import annotations

import numpy as np

from distreduce._utils.typing import Array


def log_density(target: Array, mean: Array, variance: Array) -> Array:
    """log N(y; m, v), element by element."""
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + (target - mean) ** 2 / variance))


def stacking_weights(log_densities: Array, max_iter: int = 1000, tol: float = 1e-6) -> Array:
    r"""Weights (k,) of k models, stacked by their leave-one-out log densities (k, n) (Yao et al., 2018).

    .. math:: \max_{w \in \Delta} \sum_i \log \sum_k w_k\, p_k(y_i \mid y_{-i})

    The problem is concave; the EM step :math:`w_k \leftarrow \mathrm{mean}_i\, w_k p_{ki}/\sum_l w_l p_{li}` never
    lowers it and needs no step size.
    """
    densities = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(len(densities), 1.0 / len(densities))
    for _ in range(max_iter):
        shares = weights[:, None] * densities
        updated = (shares / shares.sum(axis=0)).mean(axis=1)
        moved, weights = np.abs(updated - weights).max(), updated
        if moved < tol:
            break
    return weights


def mixed_moments(weights: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    r"""Mean and variance of the mixture of k Gaussians, (k, n) arrays.

    .. math:: m = \sum_k w_k m_k, \qquad v = \sum_k w_k (v_k + (m_k - m)^2)
    """
    mean = weights @ means
    return mean, weights @ (variances + (means - mean) ** 2)

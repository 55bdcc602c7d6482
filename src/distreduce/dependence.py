"""HSIC and CKA: the dependence between two kernels on the same weighted points (the paper's CKA term).

Points may carry weights w. Every quantity is that of the probability measure Σ_i p_i δ_i, p = w / Σ w: a point of
weight two counts as that point given twice, and multiplying all weights by a number changes nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from distreduce._utils.typing import Array
from distreduce.exceptions import InvalidInputError

# A kernel counts as constant when centring leaves less than this share of its norm: what remains is then rounding.
CONSTANT_SHARE = 1e-13


def center(K: Array, weights: ArrayLike | None = None) -> Array:
    """Centred kernel H K Hᵀ with H = I − 1 pᵀ: features have weighted mean zero.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    weights : array-like of shape (n,), optional
        Non-negative weights of the points; uniform by default.

    Returns
    -------
    ndarray of shape (n, n)
    """
    p = _probabilities(len(K), weights)
    rows, columns = K @ p, p @ K  # H K Hᵀ without forming H: O(n²) instead of two matrix products
    return K - rows[:, None] - columns[None, :] + p @ rows


def hsic(K: Array, L: Array, weights: ArrayLike | None = None) -> float:
    """Hilbert–Schmidt independence criterion Σ_ij p_i p_j (HKHᵀ)_ij (HLHᵀ)_ij, the biased (V-statistic) estimator.

    With uniform weights this is tr(K H L H) / n².
    """
    return _inner(center(K, weights), center(L, weights), _probabilities(len(K), weights))


def cka(K: Array, L: Array, weights: ArrayLike | None = None, centered: bool = True) -> float:
    """Kernel alignment ⟨K, L⟩ / (‖K‖ ‖L‖) under ⟨K, L⟩ = Σ_ij p_i p_j K_ij L_ij, of the centred kernels.

    Parameters
    ----------
    K, L : ndarray of shape (n, n)
        Kernel matrices on the same n points.
    weights : array-like of shape (n,), optional
        Non-negative weights of the points; uniform by default.
    centered : bool
        False gives the formula as the paper prints it, (CKA) without centring.

    Returns
    -------
    float
        Between 0 and 1 for positive semi-definite kernels; 0 if either kernel is constant (zero, if not centred).

    Examples
    --------
    >>> import numpy as np
    >>> K = np.outer([1.0, 2.0, 4.0], [1.0, 2.0, 4.0])
    >>> round(cka(K, 3 * K + 5), 12)
    1.0
    """
    p = _probabilities(len(K), weights)
    K_used, L_used = (center(K, p), center(L, p)) if centered else (K, L)
    norm_K, norm_L = _norm(K_used, p), _norm(L_used, p)
    # A constant kernel depends on nothing; the formula would divide rounding by rounding.
    if norm_K <= CONSTANT_SHARE * _norm(K, p) or norm_L <= CONSTANT_SHARE * _norm(L, p):
        return 0.0
    return _inner(K_used, L_used, p) / (norm_K * norm_L)


def _inner(K: Array, L: Array, p: Array) -> float:
    if K.shape != L.shape:
        raise InvalidInputError(f"K and L must be kernels on the same points; got shapes {K.shape} and {L.shape}.")
    return float(p @ (K * L) @ p)


def _norm(K: Array, p: Array) -> float:
    return float(np.sqrt(_inner(K, K, p)))


def _probabilities(n: int, weights: ArrayLike | None) -> Array:
    if weights is None:
        return np.full(n, 1.0 / n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.sum() > 0:
        raise InvalidInputError(f"weights must be {n} finite numbers ≥ 0, not all zero; got shape {w.shape}.")
    return np.asarray(w / w.sum())
